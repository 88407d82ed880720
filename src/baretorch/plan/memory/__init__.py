"""Compute lifetimes, and give every buffer an offset and a bank of RAM."""
