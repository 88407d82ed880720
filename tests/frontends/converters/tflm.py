"""MODEL.tflite INPUTS.npz OUTPUTS.npz COUNT: run a model in TensorFlow Lite Micro's own interpreter. Each array of
INPUTS holds an input of all runs, each of the COUNT arrays of OUTPUTS an output. Runs in an environment of its own,
without Baretorch."""

from __future__ import annotations

import sys

import numpy as np
from tflite_micro.python.tflite_micro import runtime  # type: ignore[import-untyped]

model, given, made, count = sys.argv[1:]
interpreter = runtime.Interpreter.from_file(model, arena_size=1 << 20)
with np.load(given) as inputs:
    arrays = [inputs[name] for name in inputs.files]
outputs = []
for values in zip(*arrays, strict=True):
    for i, value in enumerate(values):
        interpreter.set_input(value, i)
    interpreter.invoke()
    outputs.append([np.array(interpreter.get_output(i)) for i in range(int(count))])
np.savez(made, *(np.stack(column) for column in zip(*outputs, strict=True)))
