"""nn.Module -> the same module in int8, by torchao's pt2e flow."""

from __future__ import annotations

import logging

# torchao complains about accelerator libraries that nobody asked for when it is first imported.
logging.disable(logging.WARNING)
try:
    import torchao.quantization.pt2e  # noqa: F401
except ImportError as error:
    from baretorch.errors import CompileError

    raise CompileError(
        "torchao is needed to quantize and is not installed",
        need="torchao 0.18.0",
        try_='pip install "baretorch[torch]"',
    ) from error
finally:
    logging.disable(logging.NOTSET)
