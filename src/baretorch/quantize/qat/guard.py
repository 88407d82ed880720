"""torchao, imported without its noise, or an error that says how to get it."""

from __future__ import annotations

import logging

from baretorch.errors import CompileError

# torchao complains about accelerator libraries that nobody asked for when it is first imported.
logging.disable(logging.WARNING)
try:
    import torchao.quantization.pt2e  # noqa: F401
except ImportError as error:
    raise CompileError(
        "torchao is needed to train in int8 and is not installed",
        need="torchao 0.18.0",
        try_='pip install "baretorch[torch]"',
    ) from error
finally:
    logging.disable(logging.NOTSET)
