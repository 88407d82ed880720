"""PyTorch on tensors this small is faster without threads."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
