"""Rewrite a model of the domain ai.onnx.ml so that all its values are tensors of numbers: maps become tensors, and
labels that are texts become their indices. The original runtime then computes the same numbers."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import AttributeProto, TensorProto, helper

from baretorch.escape import line
from baretorch.frontends.onnx.call import ML

SHOWN = 20  # labels in a note
# The attributes with texts of an operator, and the attribute with the numbers that replace them.
TEXTS = {
    "TreeEnsembleClassifier": ("classlabels_strings", "classlabels_int64s"),
    "LinearClassifier": ("classlabels_strings", "classlabels_ints"),
    "SVMClassifier": ("classlabels_strings", "classlabels_ints"),
    "LabelEncoder": ("values_strings", "values_int64s"),
}


def as_numbers(model: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the model without maps and texts, and notes for the user."""
    if not any(node.domain == ML for node in model.graph.node):
        return model, ()
    made, notes = onnx.ModelProto(), []
    made.CopyFrom(model)
    outputs = {o.name: o for o in made.graph.output}
    texts = {t.name: t for t in made.graph.initializer if t.data_type == TensorProto.STRING}
    changed: set[str] = set()  # values that were texts
    for node in made.graph.node:
        name = line(node.name or next(iter(node.output), ""))
        if node.domain == ML and node.op_type == "ZipMap":
            notes.append(f"{name}: ZipMap is left out; {line(node.output[0])} is the tensor of all probabilities")
            if node.output[0] in outputs:
                _set_type(outputs[node.output[0]], TensorProto.FLOAT)
            node.op_type, node.domain = "Identity", ""
            if not any(o.domain in ("", "ai.onnx") for o in made.opset_import):
                made.opset_import.append(helper.make_opsetid("", 13))
            del node.attribute[:]
        elif node.domain == ML and node.op_type in TEXTS:
            own, other = TEXTS[node.op_type]
            found = next((a for a in node.attribute if a.name == own), None)
            if found is not None and found.strings:
                notes.append(_labels(name, found.strings))
                replacement = helper.make_attribute(other, list(range(len(found.strings))))
                kept = [a for a in node.attribute if a.name not in (own, other, "default_string")]
                del node.attribute[:]
                node.attribute.extend([*kept, replacement])
                changed.add(node.output[0])
        elif node.domain == ML and node.op_type == "ArrayFeatureExtractor" and node.input[0] in texts:
            tensor = texts.pop(node.input[0])
            notes.append(_labels(name, tensor.string_data))
            count = len(tensor.string_data)
            numbers = helper.make_tensor(tensor.name, TensorProto.INT64, [count], list(range(count)))
            tensor.CopyFrom(numbers)
        if any(x in changed for x in node.input):
            changed.update(node.output)
    for node in made.graph.node:
        for a in node.attribute if node.op_type == "Cast" else ():
            if a.name == "to" and a.type == AttributeProto.INT and a.i == TensorProto.STRING:
                a.i = TensorProto.INT64
    for output in outputs.values():
        if output.type.tensor_type.elem_type == TensorProto.STRING:
            _set_type(output, TensorProto.INT64)
    return made, tuple(notes)


def _labels(name: str, labels: Any) -> str:
    texts = [line(raw.decode("utf-8", "replace")) for raw in labels[:SHOWN]]
    shown = ", ".join(f"{i} {text}" for i, text in enumerate(texts))
    return f"{name}: labels are texts; their indices are used: {shown}{', …' if len(labels) > SHOWN else ''}"


def _set_type(value: Any, element: int) -> None:
    """Make a value a tensor of this type and any shape."""
    kind = value.type.tensor_type
    shape = None
    if value.type.HasField("tensor_type") and kind.HasField("shape"):
        shape = onnx.TensorShapeProto()
        shape.CopyFrom(kind.shape)
    value.type.Clear()
    value.type.tensor_type.elem_type = element
    if shape is not None:
        value.type.tensor_type.shape.CopyFrom(shape)
