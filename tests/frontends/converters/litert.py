"""MODEL.py OUT.tflite [--int8]: a model file's module converted with litert-torch, and quantized with
ai-edge-quantizer. Runs in an environment of its own, without Baretorch."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import litert_torch  # type: ignore[import-not-found]
from ai_edge_quantizer import quantizer, recipe  # type: ignore[import-not-found]


def load(path: Path) -> Any:
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("model_file", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(model: Path, out: Path, int8: bool) -> None:
    file = load(model)
    litert_torch.convert(file.model().eval(), file.inputs()).export(str(out))
    if not int8:
        return
    q = quantizer.Quantizer(str(out))
    q.load_quantization_recipe(recipe.static_wi8_ai8())
    samples = [{f"args_{i}": x.numpy() for i, x in enumerate(sample)} for sample in file.calibration()]
    result = q.calibrate({"serving_default": samples[:32]})
    out.unlink()
    q.quantize(result).export_model(str(out))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]), "--int8" in sys.argv)
