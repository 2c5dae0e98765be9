"""IR to a stage of a DV700 model: subnets of raw commands and of host functions in the container of the BM168x family.

Tensors of device subnets are f32 values of host memory (element `cpu_address`, dense NCHW) and WHC8 maps of fp16 in
device memory (byte `address`); the runtime converts inputs before and outputs after the commands. Inputs and outputs of
the net and host subnets are in host memory only.

Commands of a group of runs with their places in memory, and what the summary says of each run. One command takes all
samples whose maps lie one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bmcompiler.backends.dv.chip import CHIP
from bmcompiler.backends.dv.driver.commands import NULL
from bmcompiler.backends.dv.driver.geometry import Extent, weight_bytes
from bmcompiler.backends.dv.driver.structs import MOST_SAMPLES
from bmcompiler.backends.dv.driver.unified_buffer import chain_need, tile_run
from bmcompiler.backends.dv.kernels.concat import ConcatKernel
from bmcompiler.backends.dv.lowering.build import DvBuild, map_bytes
from bmcompiler.backends.dv.lowering.chains import CommandPlan
from bmcompiler.backends.dv.lowering.joining import Node
from bmcompiler.backends.dv.lowering.plan import plan_device
from bmcompiler.bmodel.bm168x import DTYPES, Bm168xStage, Bm168xTensor, CpuSubnet, TpuSubnet
from bmcompiler.bmodel.layers import LayerSpan, encode_layers
from bmcompiler.codegen.cpu_segment import encode_copy
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.partition import Segment
from bmcompiler.codegen.program import Program, borders
from bmcompiler.errors import BMError, UnsupportedError
from bmcompiler.ir import Operation, TensorType, Value
from bmcompiler.ir.keys import is_weight
from bmcompiler.target import GroupInfo, LayerRow


def group_info(group: CommandPlan, number: int) -> GroupInfo:
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


def emit_command(group: CommandPlan, build: DvBuild, where: str) -> Emitted:
    """Add the commands to the program."""
    nodes = group.nodes
    runs = []
    for node in nodes:
        try:
            runs.append(build.weighted(node.part, _read_flat(node, build)))
        except BMError as error:
            raise error.located(layer=node.name, kind=node.kind) from None
    command = replace(group.command(), runs=tuple(runs))
    emitted = Emitted()
    addend, samples = nodes[-1].part.addend, nodes[0].samples
    starts = range(0, samples, _most_samples(group, build))
    for sample in starts:
        first = build.records
        count = min(starts.step, samples - sample)
        placed = replace(
            command,
            input_buf=build.map(group.source, sample),
            output_buf=build.map(group.results()[0], sample),
            eltwise_buf=NULL if addend is None else build.map(addend, sample),
            input_circular_offset=count if count > 1 else 0,
        )
        build.conv(placed)
        emitted.spans += [LayerSpan(node.name, node.kind, first + index, 1) for index, node in enumerate(nodes)]
    for index, (node, run) in enumerate(zip(nodes, command.runs)):
        external = command.writes_external(index)
        weights = weight_bytes(run, node.before.c)
        added = 0 if node.part.addend is None else map_bytes(node.part.addend)
        source = samples * node.before.bytes
        row = LayerRow(
            node.name,
            node.kind,
            where,
            node.ops[-1].results[0].shape,
            loaded=len(starts) * weights + (source if index == 0 else 0) + added,
            stored=samples * node.after.bytes if external else 0,
            weights=len(starts) * weights,
            commands=len(starts) if index == 0 else 0,
            tiles=samples * (1 if command.is_multi_run else tile_run(node.before, run, CHIP.ub_size).tiles),
            macs=sum(op.macs() for op in node.ops),
            inputs=source + added,
            outputs=samples * node.after.bytes,
            parameters=min(weights, _parameter_bytes(node)),
            note="; ".join([*_place(group, node, external), *node.notes]),
        )
        emitted.rows.append(row)
        needed = row.inputs + row.outputs + row.parameters
        emitted.spans[index] = replace(emitted.spans[index], macs=row.macs, nbytes=needed)
    return emitted


def _read_flat(node: Node, build: DvBuild) -> Extent | None:
    """The map in memory that a run reads as a vector of channels, if it does."""
    if not isinstance(node.source, Value) or build.extent(node.source) == node.before:
        return None
    return build.extent(node.source)


def _most_samples(group: CommandPlan, build: DvBuild) -> int:
    """Samples that a command takes: more than one where all their maps lie one after the other (dv.md 1.6)."""
    nodes = group.nodes
    written = sum(chain[-1].after.bytes for chain in group.chains)
    strides = [(group.source, nodes[0].before.bytes), (group.results()[0], written)]
    addend = nodes[-1].part.addend
    if addend is not None:
        strides.append((addend, map_bytes(addend) // nodes[0].samples))
    return MOST_SAMPLES if all(build.place(key).stride == stride for key, stride in strides) else 1


def _parameter_bytes(node: Node) -> int:
    """Weights of the layer; packed ones may be more, as those of a factor that is a convolution."""
    operands = dict.fromkeys(value for op in node.ops for value in op.operands)
    return sum(value.type.nbytes for value in operands if is_weight(root_of(value)))


def _place(group: CommandPlan, node: Node, external: bool) -> list[str]:
    """Where a run stands in its command."""
    notes = []
    if node is not group.nodes[0]:
        notes.append(f"in the command of {group.nodes[0].name}")
    return notes if external else [*notes, "result stays in the unified buffer"]


HOST, BOTH = 2, 3
"""`Bm168xTensor.memory`."""
HOST_ELEMENT = 4
"""Bytes that host memory is counted in."""
IN_PLACE = "its parts are made in their places"
CPU_LAYER = 3
"""Number of host subnets among the container's layers, "user defined"."""


class DvProgram(Program[DvBuild]):
    """Code generation of one function; `stage` is its result. `map_bytes`: device memory of all feature maps."""

    def start(self, level: int) -> DvBuild:
        self._subnets: list[TpuSubnet | CpuSubnet] = []
        device = [segment for segment in self.segments if segment.device]
        self._plans = [plan_device(segment.ops, *borders(segment), self.target.kernel_for, level) for segment in device]
        self.map_bytes = max((plan.size for plan in self._plans), default=0)
        return DvBuild(self.plan, self.coefficients)

    def without_memory(self, segment: Segment) -> set[Value]:
        """Host memory holds what crosses a border; all else lies in device memory."""
        inside = {result for op in segment.ops for result in op.results} if segment.device else segment.hidden()
        return inside.difference(segment.outputs())

    def _moving(self, index: int) -> list[Operation]:
        """Device ops have no part in host memory."""
        return []

    def counts(self) -> tuple[int]:
        return (self.build.records,)

    def _device(self, segment: Segment) -> None:
        plan = self._plans.pop(0)
        self.build.places = plan.places
        for step in plan.steps:
            if isinstance(step, CommandPlan):
                emitted = emit_command(step, self.build, self.target.name)
                self.rows += emitted.rows
                self.spans[0].extend(emitted.spans)
                self.groups.append(group_info(step, len(self.groups)))
            elif isinstance(self.target.kernel_for(step), ConcatKernel):
                self.rows.append(LayerRow(step.label, step.short_name, "alias", step.results[0].shape, note=IN_PLACE))
            else:
                self._emit_alone(step)
        self.end_of_device(*borders(segment))

    def call_cpu(self, segment: Segment, parameters: bytes) -> None:
        self._host(parameters)

    def copy_output(self, value: Value, offset: int) -> None:
        root = root_of(value)
        constant = is_weight(root)
        source = self.coefficients.place(root, "plain", lambda w: w) if constant else self.plan.offsets[root]
        self._host(encode_copy(value, source, offset))

    def end_of_device(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        commands = self.build.finish()
        if not commands:
            return
        data = b"".join(commands)
        group = {"bdc_num": len(commands), "gdma_num": 0, "binary_bdc": data, "bdc_cmd_byte": len(data)}
        read, written = ([self._map(value) for value in values] for values in (inputs, outputs))
        number = len(self._subnets)
        self._subnets.append(TpuSubnet([], read, written, id=number, source={"cmd_group": [group]}))

    def stage(self) -> Bm168xStage:
        """The program as a part of the model file."""
        for number, subnet in enumerate(self._subnets):
            subnet.next = [number + 1 if number + 1 < len(self._subnets) else -1]
        return Bm168xStage(
            self.input_tensors(host_tensor),
            self.output_tensors(host_tensor),
            0,
            self.map_bytes,
            self._subnets,
            coeff_address=0,
            coefficients=self.coefficients.blob(),
            cpu_mem_size=-(-self.plan.size // HOST_ELEMENT),
            layers=encode_layers(self.spans[0]).encode(),
        )

    def _host(self, parameters: bytes) -> None:
        self._subnets.append(CpuSubnet(CPU_LAYER, parameters, [], [], id=len(self._subnets), custom=True))
        self.build.host()

    def _map(self, value: Value) -> Bm168xTensor:
        offset = self.plan.offsets[root_of(value)]
        address = self.build.map(value, 0).offs
        tensor = Bm168xTensor(f"map{address}", "float32", value.shape, address, memory=BOTH)
        tensor.cpu_address = offset // HOST_ELEMENT
        return tensor


def host_tensor(name: str, type: TensorType, offset: int) -> Bm168xTensor:
    """An input or output of the net. Raises UnsupportedError for element types that the container cannot name."""
    dtype = str(type.numpy)
    if dtype not in DTYPES:
        raise UnsupportedError(
            f"'{name}' has element type {type.dtype}, which the model file cannot hold",
            remedy=f"cast it to one of {', '.join(DTYPES)}",
        )
    return Bm168xTensor(name, dtype, type.shape or (1,), memory=HOST, cpu_address=offset // type.numpy.itemsize)
