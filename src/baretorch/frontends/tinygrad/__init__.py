"""tinygrad: a model is traced by the calls of Tensor's methods during one run."""
