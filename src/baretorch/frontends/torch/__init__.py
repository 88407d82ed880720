"""PyTorch's own objects -> plain programs -> ATen programs."""
