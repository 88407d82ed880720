"""Arm's Ethos-U: regions of an int8 Graph become TOSA, which Vela compiles and our driver starts."""
