"""Weight layouts of int8, int4 and float16 kernels, by the instructions of the CPU."""
