"""Shared parts of operators: the Kernel row, shape checks, base classes, windows, cuts and overlap distances."""
