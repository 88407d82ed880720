"""Measure images and runs: facts, cycles, profiles, memory maps, and the use of units."""
