"""TensorFlow Lite's `.tflite` files, as LiteRT and TFLM run them."""
