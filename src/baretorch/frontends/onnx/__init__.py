"""Read .onnx files with the `onnx` package alone."""
