"""Reference runtimes, LiteRT and onnxruntime, in a child process: a file that crashes one of them crashes only that."""
