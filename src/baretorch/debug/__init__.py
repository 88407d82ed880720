"""Debug a running model with gdb, on an emulator or a board, with commands that know its layers and tensors."""
