"""Read TensorFlow Lite's .tflite files."""
