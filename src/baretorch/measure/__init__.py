"""Measure what was built and run: facts, cycles, profiles, memory maps, and what units did."""
