"""gdb at a running model: the image on an emulator or a board that waits for it, and commands that know the model."""
