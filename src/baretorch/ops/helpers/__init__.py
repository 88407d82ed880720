"""What operators share: the Kernel row, shape checks, windows, limits, cuts and overlap distances."""
