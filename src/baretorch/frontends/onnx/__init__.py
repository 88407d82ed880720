"""Read .onnx files with the `onnx` package alone.

`reader` checks a file, `interface` its inputs and outputs, `lowering` walks over its nodes. `definitions` asks the onnx
package for constants and function bodies, `runtime` computes the model's own results, `proto` converts messages. The
other modules have rows: functions of ONNX's own inputs and attributes.
"""
