"""Read TensorFlow Lite's .tflite files.

`schema` reads the flatbuffer, `lowering` walks over its operators; a row gets a `TfliteCall` with its options. `source`
compares the model with LiteRT. The other modules have rows.
"""
