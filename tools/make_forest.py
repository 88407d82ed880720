"""Train a random forest on scikit-learn's digits, and write it to tests/frontends/data/digits_forest.npz.

    python tools/make_forest.py

It needs scikit-learn and skl2onnx (the extra `judges`). The file has the attributes of the ONNX node, the test digits,
10,000 inputs made of them (`tests/frontends/onnx/digits.py`), and scikit-learn's class of each.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.frontends.onnx.digits import DATA, vary  # noqa: E402


def main() -> None:
    from skl2onnx import to_onnx
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    x = digits.data.astype(np.float32)
    train, test, labels, _ = train_test_split(x, digits.target, test_size=0.25, random_state=0)
    forest = RandomForestClassifier(n_estimators=10, max_depth=8, random_state=0).fit(train, labels)
    made = to_onnx(forest, train[:1], options={"zipmap": False})
    (node,) = (n for n in made.graph.node if n.op_type == "TreeEnsembleClassifier")
    arrays = {}
    for a in node.attribute:
        if a.ints:
            arrays[a.name] = np.array(a.ints, np.int16)
        elif a.floats:
            arrays[a.name] = np.array(a.floats, np.float32)
        elif a.strings:
            arrays[a.name] = np.array([s.decode() for s in a.strings], "S")
    del arrays["nodes_hitrates"]
    voted = arrays["class_weights"] != 0  # most of 10 classes have no vote in a leaf
    for name in ("class_weights", "class_ids", "class_nodeids", "class_treeids"):
        arrays[name] = arrays[name][voted]
    pixels = test.astype(np.uint8)
    classes = forest.predict(vary(pixels)).astype(np.uint8)
    np.savez_compressed(DATA, **arrays, pixels=pixels, classes=classes)
    print(f"{DATA.name}: {DATA.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
