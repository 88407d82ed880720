"""Every operator and its kernels: the tables to read first."""
