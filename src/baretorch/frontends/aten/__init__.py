"""ATen programs -> Graph: what every PyTorch frontend reads."""
