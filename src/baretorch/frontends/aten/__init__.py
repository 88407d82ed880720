"""Lower ATen programs to Graphs; every PyTorch frontend uses these rows."""
