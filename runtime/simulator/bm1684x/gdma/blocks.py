"""Matrix commands and general ones, which move flat blocks (bm1684x.md 3.4)."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Function
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arrays import Array
from bmcompiler.runtime.simulator.bm1684x.gdma.tensors import check_lanes
from bmcompiler.runtime.simulator.bm1684x.gdma.transfer import Transfer
from bmcompiler.runtime.simulator.bm1684x.operands import Result
from bmcompiler.runtime.simulator.memory import Shape, Tensor
from bmcompiler.runtime.simulator.plan import Step
from bmcompiler.runtime.simulator.sections import Sections

_BROADCAST = 1  # function of general commands


def matrix_step(transfer: Transfer) -> Step:
    """Rows outside of local memory to or from the sections of a local matrix; function 1 transposes.

    Raises:
        SimulatorError: no side or both sides are local, the sections are not those that the columns need, or forms
            whose meaning is not known.
    """
    f = transfer.fields
    load = transfer.is_local("dst")
    if load == transfer.is_local("src"):
        raise SimulatorError("one side of a matrix transfer must be local memory, the other must not")
    if transfer.function not in (Function.COPY, Function.NC_TRANSPOSE) or transfer.fills or f["nchw_copy"]:
        raise SimulatorError("a matrix is loaded or stored, and perhaps transposed, nothing else")
    outer_side, local_side = ("src", "dst") if load else ("dst", "src")
    (height, columns, pitch), (rows, sections, width), steps = _sizes(transfer, outer_side, local_side)
    transposed = transfer.function == Function.NC_TRANSPOSE
    wanted = (columns, height) if transposed else (height, columns)
    if width < 1 or (rows, sections) != (wanted[0], -(-wanted[1] // width)):
        local = f"{rows} rows in {sections} sections of {width}"
        raise SimulatorError(f"a matrix of {wanted[0]} x {wanted[1]} does not fit {local}")
    outer = transfer.tensor(outer_side, (1, 1, height, columns), (0, 0, columns if pitch is None else pitch, 1))
    lane, _ = transfer.place(local_side)
    item = transfer.dtype.itemsize
    row, section, *_ = steps or (stride // item for stride in CHIP.aligned((rows, sections, 1, width), item, lane))

    def part(shape: Shape, skip: int) -> Tensor | Result:
        # lanes of skipped sections: the tensor begins in a later lane, perhaps a row of lanes further
        down, at = divmod(lane + skip, CHIP.lanes)
        moved = (at - lane) * CHIP.lmem_size + down * section * item
        strides = (row, section, 0, 1)
        if load:
            return transfer.result(shape, strides, at=moved)
        return transfer.tensor("src", shape, strides, at=moved)

    inner = Sections(part, rows, wanted[1], width)
    if load:
        return lambda: inner.write(_oriented(outer.read()[0, 0], transposed))
    return lambda: outer.write(_oriented(inner.read(), transposed)[None, None])


def _oriented(matrix: Array, transposed: bool) -> Array:
    return matrix.T if transposed else matrix


Rows = tuple[int, int, int | None]


def _sizes(transfer: Transfer, outer: str, local: str) -> tuple[Rows, tuple[int, int, int], tuple[int, int] | None]:
    """(rows, columns, pitch) outside, (rows, sections, width) inside, and (row, section) strides; None: default."""
    f, free = transfer.fields, bool(transfer.fields["stride_enable"])
    if f["cmd_short"]:
        inside, steps = (f["local_n"], f["local_c"], f["local_w"]), (f["row_str"], f["section_str"])
        outside = f["outer_h"], f["outer_w"], f["pitch"]
    else:
        inside = f[f"{local}_n"], f[f"{local}_c"], f[f"{local}_w"]
        steps = f[f"{local}_n_str"], f[f"{local}_c_str"]
        outside = f[f"{outer}_h"], f[f"{outer}_w"], f[f"{outer}_h_str"]
    return (*outside[:2], outside[2] if free else None), inside, steps if free else None


class _Block:
    """Consecutive elements; a block in local memory runs on from lane to lane."""

    def __init__(self, transfer: Transfer, side: str, count: int) -> None:
        item = transfer.dtype.itemsize
        self._parts: list[tuple[slice, Tensor | Result]] = []
        offset = transfer.place(side)[1] if transfer.is_local(side) else 0
        lane = CHIP.lmem_size if transfer.is_local(side) else count * item
        if count < 1 or offset + count * item > CHIP.lanes * lane:
            raise SimulatorError(f"a block of {count} elements does not fit the memory of {side}")
        first = 0
        while first < count:
            size = min(count - first, (lane - offset) // item)
            shape, at = (1, 1, 1, size), first * item
            part = transfer.result(shape, at=at) if side == "dst" else transfer.tensor(side, shape, at=at)
            self._parts.append((slice(first, first + size), part))
            first, offset = first + size, 0

    def read(self) -> Array:
        return np.concatenate([part.read().reshape(-1) for _, part in self._parts])

    def write(self, values: Array) -> None:
        for some, part in self._parts:
            part.write(values[some].reshape(1, 1, 1, -1))


def general_step(transfer: Transfer) -> Step:
    """A flat block to one place, or (function 1) to several lanes. Raises SimulatorError for other functions."""
    count = transfer.fields["src_c_str"]
    if transfer.function not in (0, _BROADCAST):
        raise SimulatorError(f"what function {transfer.function} of a general transfer does is not known")
    target: _Block | Tensor | Result
    if transfer.function == _BROADCAST:
        lanes = transfer.fields["dst_c"]
        check_lanes(transfer, lanes)
        target, shape = transfer.result((1, lanes, 1, count), (0, 0, 0, 1)), (1, lanes, 1, count)
    else:
        target, shape = _Block(transfer, "dst", count), (1, 1, 1, count)
    if transfer.fills:
        filled = np.broadcast_to(transfer.constant, shape)
        values = filled if transfer.function else filled.reshape(-1)
        return lambda: target.write(values)
    source = _Block(transfer, "src", count)
    if transfer.function:
        return lambda: target.write(np.broadcast_to(source.read(), shape))
    return lambda: target.write(source.read())
