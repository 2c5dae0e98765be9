"""Parts of pictures that a net is given: loaded by rows, where a copy inside global memory would be loaded again."""

from __future__ import annotations

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import dims4, item_bytes
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.build import dense_strides
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.pictures import is_picture
from bmcompiler.codegen.tiling import Buffer, Runs, TileWork
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.places.shape import Slice


def load_part(machine: LaneMachine, op: Slice) -> TileWork | None:
    """Rows and columns of a picture that the net is given, a row per lane, as casts read them; None for other slices.

    The copy in local memory gives them a place of their own: it takes a fraction of the cycles of the load.
    """
    chip, item, value = machine.chip, item_bytes(op.result), op.x
    only_cast = all(isinstance(user, Cast) for user in op.result.users)
    if (
        root_of(value).op is not None
        or not is_picture(value)
        or not only_cast
        or set(op.steps) != {1}
        or chip.image_slots(item) > 1
    ):
        return None
    n, c, h, w = dims4(op.result)
    view: Shape = (n * c, h, 1, w)
    if value.shape[:2] != (n, c) or not chip.fits_fields(view):
        return None
    _, by_map, by_row, _ = dense_strides(dims4(value))
    strides, first = (by_map, by_row, by_row, 1), op.starts[2] * by_row + op.starts[3]

    def load(build: LaneBuild, address: int) -> None:
        build.load(build.source(value) + item * first, view, strides, item, address)

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        build.copy(Words(ins[0], view, item=item), Words(outs[0], view, item=item))

    box = tuple((0, size) for size in view)
    size, rows = chip.aligned_bytes(view, item), n * c * h
    loaded = Buffer(size, "nchw", op.result.type.nbytes, load, runs=Runs(rows, rows), source=value)
    made = machine.activation_out(op.result, view, box)
    work = TileWork((loaded,), (made,), (), compute, machine.cycles.pass_cycles(view, item))
    return work if machine.fits(work) else None
