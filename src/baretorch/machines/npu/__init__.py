"""An open functional model of Arm's Ethos-U55, U65 and U85: it runs the command streams that Vela compiles."""
