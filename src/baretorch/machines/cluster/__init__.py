"""Simulate a cluster of RISC-V cores to the cycle."""
