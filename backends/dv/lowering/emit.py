"""Commands of a group of runs with their places in memory, one per sample, and what the summary says of each run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bmcompiler.backends.dv.chip import CHIP
from bmcompiler.backends.dv.driver.commands import NULL
from bmcompiler.backends.dv.driver.geometry import weight_bytes
from bmcompiler.backends.dv.driver.unified_buffer import chain_need, tile_run
from bmcompiler.backends.dv.lowering.build import DvBuild
from bmcompiler.backends.dv.lowering.chains import Group
from bmcompiler.backends.dv.lowering.joining import Node
from bmcompiler.bmodel.layers import LayerSpan
from bmcompiler.codegen.memory import root_of
from bmcompiler.ir.keys import is_weight
from bmcompiler.target import GroupInfo, LayerRow


def group_info(group: Group, number: int) -> GroupInfo:
    """The runs of a command and what of the unified buffer they need; slices along w are the tiles of a run."""
    command, nodes = group.command(), group.nodes
    if command.is_multi_run:
        return GroupInfo(number, [node.name for node in nodes], (1, 1, 1, 1), chain_need(command), [])
    tiling = tile_run(nodes[0].before, nodes[0].part.run, CHIP.ub_size)
    return GroupInfo(number, [nodes[0].name], (1, 1, 1, tiling.tiles), tiling.input_bytes + tiling.output_bytes, [])


@dataclass
class Emitted:
    """A row per run, and which records (runs) of the program belong to which layers."""

    rows: list[LayerRow] = field(default_factory=list)
    spans: list[LayerSpan] = field(default_factory=list)


def emit_group(group: Group, build: DvBuild, where: str) -> Emitted:
    """Add the commands to the program."""
    nodes = group.nodes
    command = replace(group.command(), runs=tuple(build.weighted(node.part) for node in nodes))
    emitted = Emitted()
    addend = nodes[-1].part.addend
    for sample in range(nodes[0].samples):
        first = build.records
        placed = replace(
            command,
            input_buf=build.map(group.source, sample),
            output_buf=build.map(group.results()[0], sample),
            eltwise_buf=NULL if addend is None else build.map(addend, sample),
        )
        build.conv(placed)
        emitted.spans += [LayerSpan(node.name, node.kind, first + index, 1) for index, node in enumerate(nodes)]
    for index, (node, run) in enumerate(zip(nodes, command.runs)):
        external = command.writes_external(index)
        weights = weight_bytes(run, node.before.c)
        loaded = weights + (node.before.bytes if index == 0 else 0)
        added = 0 if node.part.addend is None else 2 * node.part.addend.type.size // node.samples
        loaded += added
        row = LayerRow(
            node.name,
            node.kind,
            where,
            node.ops[-1].results[0].shape,
            loaded=node.samples * loaded,
            stored=node.samples * node.after.bytes if external else 0,
            weights=node.samples * weights,
            commands=node.samples if index == 0 else 0,
            tiles=node.samples * (1 if command.is_multi_run else tile_run(node.before, run, CHIP.ub_size).tiles),
            macs=sum(op.macs() for op in node.ops),
            inputs=node.samples * (node.before.bytes + added),
            outputs=node.samples * node.after.bytes,
            parameters=min(weights, _parameter_bytes(node)),
            note="; ".join([*_place(group, node, external), *node.notes]),
        )
        emitted.rows.append(row)
        needed = row.inputs + row.outputs + row.parameters
        emitted.spans[index] = replace(emitted.spans[index], macs=row.macs, nbytes=needed)
    return emitted


def _parameter_bytes(node: Node) -> int:
    """Weights of the layer; packed ones may be more, as those of a factor that is a convolution."""
    operands = dict.fromkeys(value for op in node.ops for value in op.operands)
    return sum(value.type.nbytes for value in operands if is_weight(root_of(value)))


def _place(group: Group, node: Node, external: bool) -> list[str]:
    """Where a run stands in its command."""
    notes = []
    if node is not group.nodes[0]:
        notes.append(f"in the command of {group.nodes[0].name}")
    return notes if external else [*notes, "result stays in the unified buffer"]
