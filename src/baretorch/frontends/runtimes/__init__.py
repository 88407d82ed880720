"""Run LiteRT and onnxruntime in a child process, because a damaged file can crash them."""
