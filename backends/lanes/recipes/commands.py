"""The TIU commands of recorded recipes (bm1684.md 6.2, 6.4 to 6.9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.isa import Eu, Precision, StrideCode, Task
from bmcompiler.backends.bm1684.layout import Shape, Strides, aligned_strides, channel_rows
from bmcompiler.backends.bm1684.tables import OFFSETS
from bmcompiler.backends.lanes.recipes.machine import NEUTRAL, ONE, Immediate, Operand, Register, Scan, Step
from bmcompiler.errors import EncodingError

Range = tuple[int, int]
_BIT_UNITS = (Eu.AND, Eu.OR, Eu.XOR, Eu.SHIFT, Eu.SELECT_EQ, Eu.COPY)


class Tiu(Protocol):
    """The part of a program builder that recipes use."""

    def tiu(self, reads: Sequence[Range], writes: Sequence[Range], **fields: int) -> Any:
        """Add a TIU command; ranges are bytes of a lane, of L2 from `CHIP.l2_window` on."""


class Plane(NamedTuple):
    """A tile in local memory: byte offset in the lane, strides in words; None = the aligned default layout."""

    address: int
    strides: Strides | None = None


class Tile(NamedTuple):
    """A register in its place."""

    plane: Plane
    shape: Shape

    @property
    def strides(self) -> Strides:
        """In words."""
        return self.plane.strides or aligned_strides(self.shape)

    def rows(self, first: int, size: int) -> Tile:
        """Part of it along h."""
        n, c, _, w = self.shape
        return Tile(Plane(self.plane.address + 4 * first * self.strides[2], self.strides), (n, c, size, w))

    @property
    def range(self) -> Range:
        """Bytes of a lane that it lies in."""
        n, c, h, w = self.shape
        sizes = (n, channel_rows(0, c), h, w)
        last = sum((size - 1) * stride for size, stride in zip(sizes, self.strides))
        return self.plane.address, self.plane.address + 4 * (last + 1)


def emit_step(build: Tiu, step: Step, tiles: Sequence[Tile], target: Tile) -> None:
    """Emit one command; `tiles` are the registers by number.

    Raises EncodingError for strides in a command that knows only the default layout.
    """
    sources = [_tile(source, tiles) for source in step.sources]
    if step.scan is None:
        _COMMANDS[step.task](build, step, sources, target)
    else:
        _scan(build, step, step.scan, sources[0], target)


def _scan(build: Tiu, step: Step, scan: Scan, source: _Source, target: Tile) -> None:
    """A command for each row."""
    assert isinstance(source, Tile)
    before: int | None = None
    for row in scan.rows(target.shape[2]):
        here = target.rows(row, 1)
        if before is None:
            first = Immediate(NEUTRAL[step.unit]) if scan.exclusive else source.rows(row, 1)
            _tensor(build, step._replace(unit=Eu.COPY), [first], here)
        else:
            _tensor(build, step, [target.rows(before, 1), source.rows(before if scan.exclusive else row, 1)], here)
        before = row


_Source = Tile | Immediate


def _tile(source: Operand, tiles: Sequence[Tile]) -> _Source:
    if isinstance(source, Immediate):
        return source
    tile = tiles[source.number]
    if isinstance(source, Register):
        return tile
    return tile.rows(source.first, source.size)


def _sizes(shape: Shape) -> dict[str, int]:
    return {f"res0_{axis}": size for axis, size in zip("nchw", shape)}


def _strides(name: str, strides: Strides) -> dict[str, int]:
    return {f"{name}_{axis}_str": stride & 0xFFFF_FFFF for axis, stride in zip("nchw", strides)}


def _operand(name: str, source: _Source) -> dict[str, int]:
    """Address of a tile, or an immediate."""
    if isinstance(source, Immediate):
        return {f"{name}_addr": source.bits, f"opt_{name}_const": 1}
    return {f"{name}_addr": local_address(source.plane.address)}


def _reads(step: Step, sources: Sequence[_Source]) -> list[Range]:
    tiles = [source.range for source in sources if isinstance(source, Tile)]
    if isinstance(step.table, int) and CHIP.l2_free[0] <= step.table < CHIP.l2_free[1]:  # constant tables never change
        tiles.append((CHIP.l2_window + step.table, CHIP.l2_window + step.table + 4 * step.terms))
    return tiles


def _spread(tile: Tile, shape: Shape) -> Strides:
    """Strides that repeat a tile along the axes where it has one element and the result more."""
    n, c, h, w = (0 if a == 1 and b > 1 else s for a, b, s in zip(tile.shape, shape, tile.strides))
    return n, c, h, w


def _tensor(build: Tiu, step: Step, sources: Sequence[_Source], target: Tile) -> None:
    """Task 3: every operand has stride registers."""
    fields = {**_sizes(target.shape), "res0_addr": local_address(target.plane.address)}
    fields |= {"short_res0_str": StrideCode.EXPLICIT, **_strides("res0", target.strides)}
    for name, source in zip(("opd0", "opd1"), sources):
        fields |= _operand(name, source) | {f"short_{name}_str": StrideCode.EXPLICIT}
        if isinstance(source, Tile):
            fields |= _strides(name, _spread(source, target.shape))
    if step.unit in _BIT_UNITS:
        fields |= {f"opt_{name}_prec": Precision.INT32 for name in ("res0", "opd0", "opd1", "opd2")}
    if step.unit in (Eu.SELECT_GT, Eu.SELECT_EQ):
        fields |= {"opd2_addr": step.chosen, "opt_opd2_const": 1, "tsk_opd_num": 3}
    if step.unit == Eu.COPY:
        fields["tsk_opd_num"] = 1
    _add(build, step, sources, target, opt_shift_typ=int(step.arithmetic), **fields)


def _add(build: Tiu, step: Step, sources: Sequence[_Source], target: Tile, **fields: int) -> None:
    build.tiu(_reads(step, sources), [target.range], tsk_typ=step.task, tsk_eu_typ=step.unit, **fields)


def _need_default_layout(step: Step, sources: Sequence[_Source], target: Tile) -> None:
    tiles = [target, *(source for source in sources if isinstance(source, Tile))]
    if any(tile.plane.strides is not None for tile in tiles):
        raise EncodingError(f"task {int(step.task)} works on tiles in the aligned default layout only")


def _special_function(build: Tiu, step: Step, sources: Sequence[_Source], target: Tile) -> None:
    """Tasks 6 and 9: default layouts, tables by their offset in L2."""
    _need_default_layout(step, sources, target)
    fields = {**_sizes(target.shape), "res0_addr": local_address(target.plane.address), **_operand("opd0", sources[0])}
    if step.task == Task.LUT:
        fields |= {"opd1_addr": _offset(step), "opd1_h": step.terms // CHIP.execution_units}
    elif step.unit == Eu.TAYLOR:
        fields |= {"opd1_addr": _offset(step), "opd1_n": step.terms}
    elif step.unit != Eu.RSQRT:
        fields["opt_res0_prec"] = Precision.INT32
    _add(build, step, sources, target, **fields)


def _offset(step: Step) -> int:
    return step.table if isinstance(step.table, int) else OFFSETS[step.table]


def _choice(build: Tiu, step: Step, sources: Sequence[_Source], target: Tile) -> None:
    """Task 13: default layouts, but the stride registers of the first operand must hold them (bm1684.md 6.9)."""
    _need_default_layout(step, sources, target)
    address = local_address(target.plane.address)
    fields = {**_sizes(target.shape), **_strides("opd0", target.strides), "res0_addr": address, "res1_addr": address}
    for name, source in zip(("opd0", "opd1", "opd2", "opd3"), sources):
        fields |= _operand(name, source)
    _add(build, step, sources, target, tsk_opd_num=0, **fields)


def _window(build: Tiu, step: Step, sources: Sequence[_Source], target: Tile) -> None:
    """Task 1 with a kernel of ones, or for the maximum none: over everything, or windows of rows."""
    _need_default_layout(step, sources, target)
    (source,) = sources
    assert isinstance(source, Tile)
    _, _, h, w = source.shape
    rows, above = step.window
    kernel = (rows, 1) if rows else (h, 1 if target.shape[3] == w else w)
    fields = {
        **_sizes(target.shape),
        "res0_addr": local_address(target.plane.address),
        "opd0_addr": local_address(source.plane.address),
        "opd0_h": h,
        "opd0_w": w,
        "opd1_h": kernel[0],
        "opd1_w": kernel[1],
        "opd0_up_pad": above,
        "opd0_dn_pad": max(rows - 1 - above, 0),
    }
    if step.unit == Eu.MAC:
        fields |= {"opt_opd1_const": 1, "opd1_addr": ONE}
    else:
        fields["tsk_opd_num"] = 1
    _add(build, step, sources, target, **fields)


_COMMANDS: dict[Task, Callable[[Tiu, Step, Sequence[_Source], Tile], None]] = {
    Task.TENSOR: _tensor,
    Task.COMPARE: _choice,
    Task.SFU: _special_function,
    Task.LUT: _special_function,
    Task.POOL_OR_DEPTHWISE: _window,
}
