"""Emulate Arm's Ethos-U55, U65 and U85: interpret the command streams that Vela compiles, strictly."""
