"""OUT.tflite [--int8]: a Keras LSTM, which converts to the fused operator, and a linear layer. Runs in an environment
of its own with tensorflow and tf_keras, without Baretorch."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf  # type: ignore[import-untyped]

TIME, WIDTH, UNITS, CLASSES = 16, 8, 20, 6


def samples() -> Iterator[list[np.ndarray]]:
    rng = np.random.default_rng(1)
    for _ in range(64):
        yield [rng.standard_normal((1, TIME, WIDTH)).astype(np.float32)]


def lstm(return_sequences: bool) -> tf.keras.layers.LSTM:
    """Return an LSTM with weights as large as trained ones, because LiteRT's int8 kernel fails with cells below 1/2."""
    large = tf.keras.initializers.RandomNormal(stddev=0.6)
    return tf.keras.layers.LSTM(
        UNITS, return_sequences=return_sequences, kernel_initializer=large, recurrent_initializer=large
    )


def main(out: Path, int8: bool) -> None:
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((TIME, WIDTH), batch_size=1),
            lstm(return_sequences=True),
            lstm(return_sequences=False),
            tf.keras.layers.Dense(CLASSES, activation="softmax"),
        ]
    )
    call = tf.function(model).get_concrete_function(tf.TensorSpec([1, TIME, WIDTH], tf.float32))
    with TemporaryDirectory() as folder:  # only a saved model's LSTM becomes the fused operator
        model.save(folder, save_format="tf", signatures=call)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        out.write_bytes(convert(converter, int8))


def convert(converter: tf.lite.TFLiteConverter, int8: bool) -> bytes:
    if int8:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = samples
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    return bytes(converter.convert())


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--int8" in sys.argv)
