"""A cluster of RISC-V cores, simulated: what each instruction does, and the very cycle in which it does it."""
