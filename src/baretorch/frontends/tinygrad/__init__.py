"""Trace tinygrad models by the calls of Tensor's methods during one run."""
