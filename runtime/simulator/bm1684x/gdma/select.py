"""Commands that choose elements by their values: gather, scatter, masked select, nonzero (bm1684x.md 3.4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.codes import Precision
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.fp32 import flush
from bmcompiler.runtime.simulator.bm1684x.gdma.transfer import Transfer, format_of
from bmcompiler.runtime.simulator.bm1684x.operands import Result
from bmcompiler.runtime.simulator.memory import Shape, Tensor
from bmcompiler.runtime.simulator.plan import Step

_INDEX = np.dtype(np.uint32)
_MASKS: dict[int, np.dtype[Any]] = {
    Precision.INT8: np.dtype(np.uint8),
    Precision.INT16: np.dtype(np.uint16),
    Precision.FP16: np.dtype(np.float16),
    Precision.FP32: np.dtype(np.float32),
    Precision.INT32: np.dtype(np.uint32),
}


def _rows(transfer: Transfer, side: str) -> tuple[Shape, Shape | None]:
    """Shape (1, C, H, W) of a side and its strides; rows have the length of those of the source."""
    f = transfer.fields
    shape = (1, f[f"{side}_c"], f[f"{side}_h"], 1 if side == "index" else f["src_w"])
    return shape, (0, f[f"{side}_c_str"], f[f"{side}_h_str"], 1) if f["stride_enable"] else None


def _sides(transfer: Transfer) -> tuple[Tensor, Tensor | Result]:
    """Source and destination of a gather or scatter: the channels are those of source or index, of which one may be 1.

    Raises:
        SimulatorError: the channels do not fit.
    """
    given = (transfer.fields["src_c"], transfer.fields["index_c"])
    channels = max(given)
    if any(one not in (1, channels) for one in given):
        raise SimulatorError(f"{given[0]} channels of the source and {given[1]} of the index do not fit")
    (shape, strides), (target, target_strides) = (_rows(transfer, side) for side in ("src", "dst"))
    source = transfer.tensor("src", shape, strides)
    return source, transfer.result((1, channels, *target[2:]), target_strides)


def _index(transfer: Transfer) -> Tensor:
    shape, strides = _rows(transfer, "index")
    return transfer.tensor("index", shape, strides, dtype=_INDEX)


def gather_step(transfer: Transfer) -> Step:
    """dst(c, k, :) = src(c, index(c, k), :); the constant for indices beyond the source.

    Raises:
        SimulatorError: channels or rows that do not fit.
    """
    f = transfer.fields
    if f["dst_h"] != f["index_h"]:
        raise SimulatorError(f"a gather of {f['index_h']} rows cannot fill {f['dst_h']}")
    (source, result), index, missing = _sides(transfer), _index(transfer), transfer.constant

    def run() -> None:
        table, rows = source.read()[0], index.read()[0, :, :, 0].astype(np.int64)
        known = rows < len(table[0])
        channel = np.arange(result.shape[1])[:, None] * (len(table) > 1)
        found = table[channel, np.where(known, rows, 0)]
        result.write(np.where(np.broadcast_to(known, found.shape[:2])[..., None], found, missing)[None])

    return run


def scatter_step(transfer: Transfer) -> Step:
    """dst(c, index(c, k), :) = src(c, k, :); rows beyond the destination are skipped, the last of equal ones wins.

    Raises:
        SimulatorError: channels or rows that do not fit.
    """
    f = transfer.fields
    if f["src_h"] != f["index_h"] or transfer.fills:
        raise SimulatorError(f"a scatter of {f['src_h']} rows has {f['index_h']} indices, or a constant source")
    (source, result), index = _sides(transfer), _index(transfer)
    channels = result.shape[1]

    def run() -> None:
        rows = np.broadcast_to(index.read()[0, :, :, 0].astype(np.int64), (channels, f["index_h"]))
        values = np.broadcast_to(source.read()[0], (channels, *source.shape[2:]))
        channel, k = np.nonzero(rows < result.shape[2])
        if isinstance(result, Tensor) and result.view is not None:  # channels may lie over each other
            result.view[0, channel, rows[channel, k]] = values[channel, k]
            return
        dense = result.read().copy()
        dense[0, channel, rows[channel, k]] = values[channel, k]
        result.write(dense)

    return run


def _flat(transfer: Transfer, count: int, dtype: np.dtype[Any]) -> Tensor:
    if transfer.is_local("dst"):
        raise SimulatorError("how chosen elements lie in local memory is not known")
    return transfer.tensor("dst", (1, 1, 1, count), dtype=dtype)


def select_step(transfer: Transfer) -> Step:
    """Elements whose mask is not 0, side by side. Raises SimulatorError for unknown formats of the mask."""
    _refuse_short(transfer)
    shape, kind = transfer.size("src"), _MASKS.get(transfer.fields["second_format"])
    if kind is None:
        raise SimulatorError(f"a mask of format {transfer.fields['second_format']} is not known")
    source, mask = transfer.tensor("src", shape), transfer.tensor("index", shape, dtype=kind)
    target = _flat(transfer, source.read().size, transfer.dtype)

    def run() -> None:
        marks = mask.read()
        chosen = source.read()[(flush(marks) if marks.dtype == np.float32 else marks) != 0]
        assert target.view is not None, "the target is one area"
        target.view[0, 0, 0, : chosen.size] = chosen
        transfer.memories.kept = chosen.size

    return run


def nonzero_step(transfer: Transfer) -> Step:
    """Positions of the elements that are not 0, side by side. Raises SimulatorError for unknown result formats."""
    _refuse_short(transfer)
    f = transfer.fields
    if f["second_format"] not in (Precision.INT16, Precision.INT32):
        raise SimulatorError(f"positions of format {f['second_format']} are not known")
    kind, base = format_of(f["second_format"]), f["dst_n_str"]
    source = transfer.tensor("src", transfer.size("src"))
    target = _flat(transfer, source.read().size, kind)

    def run() -> None:
        found = np.flatnonzero(source.read()) + base
        assert target.view is not None, "the target is one area"
        target.view[0, 0, 0, : found.size] = found.astype(kind)
        transfer.memories.kept = found.size

    return run


def _refuse_short(transfer: Transfer) -> None:
    if transfer.fields["cmd_short"]:
        raise SimulatorError("what the short form of this command means is not known")
