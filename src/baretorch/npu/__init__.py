"""Move regions of an int8 Graph to Arm's Ethos-U: write them as TOSA, which Vela compiles."""
