"""Build an image from C files and a Board: compile, link, convert to UF2, HEX and BIN, and bound the stack."""
