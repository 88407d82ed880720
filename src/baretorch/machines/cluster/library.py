"""The simulator's C, as Python sees it: cluster.h, with the library that hooks/ compiles on first use."""

from __future__ import annotations

import ctypes
from ctypes import c_bool, c_int, c_int32, c_uint8, c_uint32, c_uint64, c_void_p
from pathlib import Path

SOURCES = ("core.c", "decode.c", "memory.c", "xcv.c")
HERE = Path(__file__).parent

MEMORIES, HOMES, CHANNELS = 4, 9, 16  # as in cluster.h


def _fields(kind: type[ctypes._SimpleCData[int]], names: str) -> list[tuple[str, type[ctypes._SimpleCData[int]]]]:
    return [(name, kind) for name in names.split()]


class MemoryStruct(ctypes.Structure):
    _fields_ = _fields(c_uint32, "origin size wait banks")


class ConfigStruct(ctypes.Structure):
    """struct bt_config."""

    _fields_ = (
        *_fields(c_uint32, "cores memories"),
        ("memory", MemoryStruct * MEMORIES),
        *_fields(c_uint32, "boot registers_wait uart events barrier_cycles"),
        *_fields(c_uint32, "dma dma_bytes dma_start dma_channels"),
        *_fields(c_uint32, "gemm gemm_rows gemm_columns gemm_depth gemm_start"),
        *_fields(c_uint32, "run returned"),
        ("home", c_uint32 * (2 * HOMES)),
    )


class ReportStruct(ctypes.Structure):
    """struct bt_report."""

    _fields_ = _fields(c_uint32, "fault core other address pc site other_site writes other_writes")


class SpanStruct(ctypes.Structure):
    """struct bt_span."""

    _fields_ = (
        *_fields(c_uint32, "core site"),
        *_fields(c_uint64, "begin end instructions load_use conflict slow barrier dma unit"),
    )


class PauseStruct(ctypes.Structure):
    """struct bt_pause."""

    _fields_ = (*_fields(c_uint32, "core channel"), *_fields(c_uint64, "begin end"))


class WorkStruct(ctypes.Structure):
    """struct bt_work."""

    _fields_ = (*_fields(c_uint32, "channel core site source target bytes"), *_fields(c_uint64, "asked begin end"))


class EventStruct(ctypes.Structure):
    """struct bt_event."""

    _fields_ = (("cycle", c_uint64), *_fields(c_uint32, "core address bytes write data pc"), ("answer", c_int32))


def load_library(path: Path) -> ctypes.CDLL:
    """The simulator in that shared library, its functions typed."""
    library = ctypes.CDLL(str(path))
    bytes_in, count = ctypes.c_char_p, ctypes.POINTER(c_uint64)
    rows: tuple[tuple[str, object, tuple[object, ...]], ...] = (
        ("bt_cluster_new", c_void_p, (ctypes.POINTER(ConfigStruct),)),
        ("bt_cluster_free", None, (c_void_p,)),
        ("bt_cluster_load", c_bool, (c_void_p, c_uint32, bytes_in, c_uint32)),
        ("bt_cluster_peek", c_bool, (c_void_p, c_uint32, ctypes.POINTER(c_uint8), c_uint32)),
        ("bt_cluster_input", c_bool, (c_void_p, bytes_in, c_uint64)),
        ("bt_cluster_output", c_uint32, (c_void_p, ctypes.POINTER(c_uint8), c_uint32)),
        ("bt_cluster_trace", c_bool, (c_void_p, c_uint64, c_bool)),
        ("bt_cluster_report", ctypes.POINTER(ReportStruct), (c_void_p,)),
        ("bt_cluster_events", ctypes.POINTER(EventStruct), (c_void_p, count)),
        ("bt_cluster_spans", ctypes.POINTER(SpanStruct), (c_void_p, count)),
        ("bt_cluster_pauses", ctypes.POINTER(PauseStruct), (c_void_p, count)),
        ("bt_cluster_works", ctypes.POINTER(WorkStruct), (c_void_p, count)),
        ("bt_cluster_calls", count, (c_void_p, c_bool, count)),
        ("bt_cluster_run", c_int, (c_void_p, c_uint64)),
    )
    for name, result, arguments in rows:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
