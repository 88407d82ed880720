"""Files of ExecuTorch: read without it, written and run with it."""
