"""PyTorch models on bare-metal microcontrollers."""
