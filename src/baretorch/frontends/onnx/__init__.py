"""Files of ONNX, read with the `onnx` package alone."""
