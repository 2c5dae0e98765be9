"""Hand-made programs and their analysis, for the timing, trace and race tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bmcompiler.backends.bm168x.builder import Ticket
from bmcompiler.backends.bm1684.build import CommandBuilder
from bmcompiler.backends.bm1684.chip import CHIP, aligned_strides, local_address
from bmcompiler.backends.bm1684.isa import FORMATS, WAIT_ID, Direction, Engine, Eu, Task
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.bmodel.bm168x import Bm168xModel, Bm168xNet, Bm168xStage, CommandGroup, CpuSubnet, TpuSubnet
from bmcompiler.bmodel.layers import LayerSpan, encode_layers
from bmcompiler.codegen.build import dense_strides as global_strides
from bmcompiler.instructions.order import STREAMS
from bmcompiler.runtime.simulator.bm168x.analysis import StageAnalysis
from bmcompiler.runtime.simulator.bm1684.analysis import analyze

NEURON = CHIP.program_base + 4096
SHAPE: Shape = (1, 64, 8, 8)
TILE_BYTES = 64 * 8 * 8 * 4
_LANE_BYTES = 256


def model(*subnets: TpuSubnet | CpuSubnet, layers: Sequence[LayerSpan] = ()) -> Bm168xModel:
    """One stage with a page of coefficients and 1 MiB of neuron memory."""
    stage = Bm168xStage([], [], NEURON, 1 << 20, list(subnets), coefficients=bytes(4096))
    stage.layers = encode_layers(layers).encode()
    return Bm168xModel([Bm168xNet("net", [stage])])


def analysed(groups: Sequence[CommandGroup], layers: Sequence[LayerSpan] = ()) -> StageAnalysis:
    return analyze(model(TpuSubnet(list(groups), [], []), layers=layers))


def transfer(build: CommandBuilder, direction: Direction, address: int, offset: int, **more: object) -> Ticket:
    """Move a tile between global and local memory; `more`: fields, and `after`."""
    local, outside = (local_address(offset), aligned_strides(SHAPE)), (address, global_strides(SHAPE))
    sides = (outside, local) if direction == Direction.SYSTEM_TO_LOCAL else (local, outside)
    fields: dict[str, object] = {"direction": direction, "stride_enable": 1}
    for name, (start, strides) in zip(("src", "dst"), sides):
        fields[f"{name}_addr"] = start
        fields |= {f"{name}_{axis}": size for axis, size in zip("nchw", SHAPE)}
        fields |= {f"{name}_{axis}_str": stride for axis, stride in zip("nchw", strides)}
    return build.gdma(**(fields | more))  # type: ignore[arg-type]


def relu(build: CommandBuilder, offset: int, **more: object) -> Ticket:
    """max(tile, 0) in place."""
    return build.tiu(
        tsk_typ=Task.TENSOR,
        tsk_eu_typ=Eu.MAX,
        opt_opd1_const=1,
        opd0_addr=local_address(offset),
        res0_addr=local_address(offset),
        **{f"res0_{axis}": size for axis, size in zip("nchw", SHAPE)},
        **more,  # type: ignore[arg-type]
    )


def relu_tiles(*, parallel: bool, tiles: int = 2) -> list[CommandGroup]:
    """y = relu(x) tile by tile; with `parallel`, tile i + 1 is loaded and i - 1 stored while tile i is computed."""
    build = CommandBuilder()
    loads: dict[int, Ticket] = {}
    works: dict[int, Ticket] = {}

    def after(*tickets: Ticket) -> dict[str, list[Ticket]]:
        return {"after": list(tickets)} if parallel else {}

    def load(i: int) -> None:
        address, slot = NEURON + i * TILE_BYTES, i % 2 * _LANE_BYTES
        loads[i] = transfer(build, Direction.SYSTEM_TO_LOCAL, address, slot, **after())

    def compute(i: int) -> None:
        works[i] = relu(build, i % 2 * _LANE_BYTES, **after(loads[i]))

    def store(i: int) -> None:
        address, slot = NEURON + (tiles + i) * TILE_BYTES, i % 2 * _LANE_BYTES
        transfer(build, Direction.LOCAL_TO_SYSTEM, address, slot, **after(works[i]))

    if not parallel:
        for i in range(tiles):
            load(i)
            compute(i)
            store(i)
        return build.groups()
    for step in range(tiles + 2):
        if 0 <= step - 2 < tiles:  # before the load that takes its slot
            store(step - 2)
        if step < tiles:
            load(step)
        if 0 <= step - 1 < tiles:
            compute(step - 1)
    return build.groups()


def waiting(groups: Sequence[CommandGroup]) -> list[tuple[int, Engine, int]]:
    """(group, engine, number) of the commands that wait for the other engine."""
    found = []
    for number, group in enumerate(groups):
        for engine in STREAMS:
            wait = FORMATS[engine].decode(np.frombuffer(group[engine], np.uint8))[WAIT_ID[engine]]
            found += [(number, engine, int(at)) for at in np.flatnonzero(wait)]
    return found


def with_wait(groups: Sequence[CommandGroup], place: tuple[int, Engine, int], wait: int) -> list[CommandGroup]:
    """The program with another wait id of one command."""
    group, engine, number = place
    columns = FORMATS[engine].decode(np.frombuffer(groups[group][engine], np.uint8))
    columns[WAIT_ID[engine]][number] = wait
    changed = list(groups[group])
    changed[engine] = FORMATS[engine].encode(columns).tobytes()
    return [*groups[:group], CommandGroup(*changed), *groups[group + 1 :]]
