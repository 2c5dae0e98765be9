"""Tensor commands: copies, fills, transpositions, broadcasts (bm1684x.md 3.4)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Function
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arrays import Array
from bmcompiler.runtime.simulator.bm1684x.gdma.transfer import Transfer
from bmcompiler.runtime.simulator.bm1684x.operands import ALL_LANES, Result, lane_mask
from bmcompiler.runtime.simulator.memory import Shape, Tensor
from bmcompiler.runtime.simulator.plan import Step

_BANKS = (0, 0x8000, 0x1_0000, 0x1_8000)
_FIRST_BANK, _BANK_END = 0x2_0000, 0x2_8000


def tensor_step(transfer: Transfer) -> Step:
    """Step of a tensor command. Raises SimulatorError for what the chip refuses or what is not known."""
    maker = _FUNCTIONS.get(transfer.function)
    if maker is None:
        raise SimulatorError(f"what function {transfer.function} of a tensor transfer does is not known")
    if transfer.fills and transfer.function not in _FILLING:
        raise SimulatorError(f"a transfer of function {transfer.function} cannot have a constant as its source")
    return maker(transfer)


def _source(transfer: Transfer) -> Tensor:
    strides = transfer.registers("src")
    if strides and not strides[3]:
        raise SimulatorError("the W stride of a source must not be 0")
    return transfer.tensor("src", transfer.size("src"), strides)


def _copied(transfer: Transfer, places: tuple[int, ...]) -> Step:
    target = transfer.size("src" if transfer.fields["nchw_copy"] else "dst")
    results = [transfer.result(target, transfer.registers("dst"), at=at) for at in places]
    if transfer.fills:
        return _filled(transfer, target, results)
    if not transfer.fields["nchw_copy"] and prod(transfer.size("src")) != prod(target):
        sizes = f"source {transfer.size('src')} and destination {target}"
        raise SimulatorError(f"{sizes} differ in their number of elements")
    source = _source(transfer)
    return _moved(lambda: source.read().reshape(target), results, transfer)


def _filled(transfer: Transfer, shape: Shape, results: list[Tensor | Result]) -> Step:
    filled = np.broadcast_to(transfer.constant, shape)

    def run() -> None:
        for result in results:
            result.write(filled)

    return run


def _moved(read: Callable[[], Array], results: list[Tensor | Result], transfer: Transfer) -> Step:
    apart = transfer.is_local("src") != transfer.is_local("dst")

    def run() -> None:
        values = read() if apart else read().copy()
        for result in results:
            result.write(values)

    return run


def _nc_transpose(transfer: Transfer) -> Step:
    """dst(c, n, h, w) = src(n, c, h, w)."""
    n, c, h, w = transfer.size("src")
    target = (c, n, h, w)
    if not transfer.fields["nchw_copy"] and transfer.size("dst") != target:
        raise SimulatorError(f"the destination {transfer.size('dst')} of a transposition must be {target}")
    return _transposed(transfer, target, (1, 0, 2, 3))


def _cw_transpose(transfer: Transfer) -> Step:
    """dst(n, w, h, c) = src(n, c, h, w); the sizes of the destination do not count."""
    n, c, h, w = transfer.size("src")
    return _transposed(transfer, (n, w, h, c), (0, 3, 2, 1))


def _transposed(transfer: Transfer, target: Shape, axes: Shape) -> Step:
    source = transfer.tensor("src", transfer.size("src"), transfer.registers("src", width=1))
    result = transfer.result(target, transfer.registers("dst", width=1))
    return _moved(lambda: source.read().transpose(axes), [result], transfer)


def cw_step(transfer: Transfer) -> Step:
    """Step of a command of type C/W transposition. Raises SimulatorError for what is not known."""
    if transfer.fills or transfer.function:
        raise SimulatorError("a C/W transposition has no constant source and no functions")
    return _cw_transpose(transfer)


def _broadcasted(transfer: Transfer, places: tuple[int, ...]) -> Step:
    """The source (n, 1, h, w) goes to all channels of a destination in local memory."""
    n, _, h, w = transfer.size("src")
    target = (n, transfer.fields["dst_c"], h, w)
    check_lanes(transfer, target[1])
    if lane_mask(transfer.fields) != ALL_LANES:
        raise SimulatorError("a broadcast with a lane mask has no known result")
    results = [transfer.result(target, transfer.registers("dst", width=1), at=at) for at in places]
    if transfer.fills:
        return _filled(transfer, target, results)
    source = transfer.tensor("src", (n, 1, h, w), transfer.registers("src", width=1))
    return _moved(lambda: np.broadcast_to(source.read(), target), results, transfer)


def check_lanes(transfer: Transfer, lanes: int) -> None:
    """Broadcasts go to `lanes` lanes from the first one, at most up to the last. Raises SimulatorError."""
    if not transfer.is_local("dst"):
        raise SimulatorError("the destination of a broadcast must be local memory")
    lane, _ = transfer.place("dst")
    if lane + lanes > CHIP.lanes:
        raise SimulatorError(f"a broadcast to {lanes} lanes from lane {lane} on leaves the {CHIP.lanes} lanes")


def _banks(transfer: Transfer) -> tuple[int, ...]:
    if not (transfer.is_local("dst") and _FIRST_BANK <= transfer.place("dst")[1] < _BANK_END):
        raise SimulatorError(
            f"transfers to four banks begin at bytes 0x{_FIRST_BANK:x} to 0x{_BANK_END - 1:x} of lanes"
        )
    return _BANKS


_FILLING = (Function.COPY, Function.BROADCAST, Function.COPY_4_BANKS, Function.BROADCAST_4_BANKS)
_FUNCTIONS: dict[int, Callable[[Transfer], Step]] = {
    Function.COPY: lambda transfer: _copied(transfer, (0,)),
    Function.NC_TRANSPOSE: _nc_transpose,
    Function.COLLECT: _cw_transpose,
    Function.BROADCAST: lambda transfer: _broadcasted(transfer, (0,)),
    Function.DISTRIBUTE: _cw_transpose,
    Function.COPY_4_BANKS: lambda transfer: _copied(transfer, _banks(transfer)),
    Function.BROADCAST_4_BANKS: lambda transfer: _broadcasted(transfer, _banks(transfer)),
}
