"""Make compiled models that compute wrong results, to test that these are reported."""

from __future__ import annotations

import re
from dataclasses import replace

from baretorch.pipeline import Compiled


def zero_weights(compiled: Compiled) -> Compiled:
    """Return the compiled model with zeros instead of all weights in its C."""
    weights = compiled.c.files["weights.c"]
    zeros = re.sub(r"(_weight\[\d+\] = \{).*?(\};)", r"\1 0 \2", weights, flags=re.DOTALL)
    assert zeros != weights
    return replace(compiled, c=replace(compiled.c, files={**compiled.c.files, "weights.c": zeros}))
