"""PyTorch models on bare-metal microcontrollers."""

__version__ = "0.1.0"
