"""Rows of the ONNX table: recurrent layers."""

from __future__ import annotations

from baretorch.frontends.onnx.rows import Row

ROWS: dict[str, Row] = {}
