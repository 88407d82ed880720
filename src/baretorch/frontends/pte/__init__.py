"""Read ExecuTorch's .pte files without ExecuTorch; write and run them with it."""
