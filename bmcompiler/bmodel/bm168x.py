"""Models of the BM168x family: nets, stages, subnets of both engines' commands (bm1684.md 10).

    model = Bm168xModel([Bm168xNet("tiny", [Bm168xStage(inputs, outputs, ctx_address, ctx_size, [TpuSubnet(...)])])])

Addresses are those of the compiler: coefficients from `FIRST_ADDRESS` on, then the neuron memory. `source` of every
part holds the fields of a file that nothing here uses, as read; they are written again.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from bmcompiler.bmodel.bm168x_streams import count
from bmcompiler.bmodel.layers import PICTURES, RANGES, SIZES, note_in, with_note
from bmcompiler.bmodel.model import FORMATS, BModel, Buffer, Stage, TensorInfo, damaged, digest
from bmcompiler.errors import UsageError
from bmcompiler.files.store import StrPath
from bmcompiler.instructions.order import STREAMS, Polled

HEADER = 64
_OURS = "bmcompiler "
FIRST_ADDRESS = 0x1_0510_0000  # first address a compiler may assign (bm1684.md 1.1)
ADDRESS_SPACE = 1 << 40  # width of an address in a GDMA command
STORE_MODES = ("1N", "2N", "4N")
# Where inputs and outputs of a net lie, by its number in the file: bm1684x.md 5.
ADDRESS_MODES = ("basic", "io_alone", "io_tag", "io_tag_fuse", "io_reloc", "in_reuse")
BASIC, IO_ALONE = 0, 1
IMAGES_PER_WORD = (1, 2, 4)  # by store mode
_COMMANDS = ("binary_bdc", "binary_gdma")
# Element types by their number in the file (bm1684.md 10.2; vendor-cli.md 7.3).
DTYPES = ("float32", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "bfloat16", "int4", "uint4")
FORMAT_OF = {name: number for number, (name, _) in FORMATS.items() if name in DTYPES}


class CommandGroup(NamedTuple):
    """Commands of both engines, whose ids count from 1: one group of a model file."""

    tiu: bytes
    gdma: bytes

    @property
    def polled(self) -> Polled:
        """What has no ids; nothing in groups of files."""
        return Polled()


@dataclass
class Bm168xTensor:
    """A tensor in device memory at the boundary of a stage or subnet.

    Attributes:
        dtype: element type as numpy names it ("float32", "int8", ...).
        address: absolute, as the compiler assigned it; the runtime relocates it.
        store_mode: 0 plain rows (1N); 1 and 2: two int16 or four int8 images share a word (2N, 4N; bm1684.md 4.2).
        scale: real value of one integer step (a float32 number), for inputs and outputs alike; 1.0 when there is none.
            Files hold its reciprocal for inputs of the net: the vendor's runner computes integers as round half away
            from zero(real * number + zero_point) and results as (integer - zero_point) * number, int8 and uint8 only.
        zero_point: integer that stands for the real number 0.
        hidden: 0 not said, 1 input of the net, 2 output of the net, 3 and up: other uses of newer tools.
        index: place among the inputs or outputs of the net.
        memory: 1 device memory, 2 host memory, 3 both; cpu_address: element offset in host memory.
        pad_h: rows between images of the compiled layout, 0 on this chip.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    address: int = 0
    store_mode: int = 0
    scale: float = 1.0
    zero_point: int = 0
    hidden: int = 0
    index: int = 0
    memory: int = 1
    cpu_address: int = 0
    pad_h: int = 0
    source: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def size(self) -> int:
        """Bytes in device memory: a partial group of 2N or 4N images takes whole words."""
        bits = FORMATS[FORMAT_OF[self.dtype]][1]
        images = IMAGES_PER_WORD[self.store_mode]
        if images == 1 or not self.shape:
            return (math.prod(self.shape) * bits + 7) // 8
        return -(-self.shape[0] // images) * images * math.prod(self.shape[1:]) * bits // 8


@dataclass
class TpuSubnet:
    """A run of device commands.

    Attributes:
        groups: the commands; none for chips that nothing here knows, whose commands are kept as they are in `source`.
        next: ids of the subnets that follow; [-1] ends the net.
        dynamic: the commands are made on the device from the stage's intermediate code, bytes `ir_offset` to
            `ir_offset + ir_length` of it; `groups` is empty then.
    """

    groups: list[CommandGroup]
    inputs: list[Bm168xTensor]
    outputs: list[Bm168xTensor]
    id: int = 0
    next: list[int] = field(default_factory=lambda: [-1])
    dynamic: bool = False
    ir_offset: int = 0
    ir_length: int = 0
    source: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass
class CpuSubnet:
    """A layer on the host: its number among the vendor's CPU layers and the bytes that describe it."""

    op_type: int
    parameters: Buffer
    inputs: list[Bm168xTensor]
    outputs: list[Bm168xTensor]
    id: int = 0
    next: list[int] = field(default_factory=lambda: [-1])
    custom: bool = False
    source: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass
class Location:
    """Where the weights of one layer lie: bytes `offset` to `offset + size` of the coefficients."""

    name: str
    offset: int
    size: int


@dataclass
class Bm168xStage:
    """The program of a net for one set of input shapes.

    Attributes:
        ctx_address, ctx_size: neuron memory as the compiler assigned it; all nets of a user share one.
        io_address, io_size: the io memory of a net with the address mode IO_ALONE, one for all stages of the net. It
            holds their inputs and outputs and keeps them between runs (bm1684x-llm.md 4).
        coeff_address, coefficients: weights and where they go; b"" when there are none.
        cpu_mem_size: elements of host memory that CPU subnets need.
        layers: which commands belong to which layer (`bmcompiler.bmodel.layers`), as text; b"" = not said.
        intermediate: the code of dynamic subnets, kept as it is.
    """

    inputs: list[Bm168xTensor]
    outputs: list[Bm168xTensor]
    ctx_address: int
    ctx_size: int
    subnets: list[TpuSubnet | CpuSubnet]
    coeff_address: int = FIRST_ADDRESS
    coefficients: Buffer = b""
    locations: list[Location] = field(default_factory=list)
    io_address: int = 0
    io_size: int = 0
    cpu_mem_size: int = 0
    layers: bytes = b""
    intermediate: Buffer = b""
    source: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def groups(self) -> list[CommandGroup]:
        """The command groups of all device subnets, in order."""
        return [group for subnet in self.subnets if isinstance(subnet, TpuSubnet) for group in subnet.groups]


@dataclass
class Bm168xNet:
    """A network: one stage per set of input shapes. `address_mode` is a number of `ADDRESS_MODES`."""

    name: str
    stages: list[Bm168xStage]
    address_mode: int = BASIC
    source: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass
class Bm168xModel(BModel):
    """A BM168x model: nets with stages of their own.

    Attributes:
        chip: as the file says it. version: of the container. time: free text, in the vendor's files the time.
        neuron_size: bytes of neuron memory of the largest stage; 0 = take it from the stages.
    """

    nets: list[Bm168xNet]
    chip: str = "BM1684"
    version: str = "2.2"
    time: str = "not recorded\n"
    neuron_size: int = 0
    source: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    container: ClassVar[str] = "bm1684"

    @property
    def target(self) -> str:
        return self.chip.lower()

    @property
    def producer(self) -> str:
        """What made the file, which stands in the free text `time`: such files record no time."""
        text = self.time.strip()
        return text if text.startswith(_OURS) else ""

    @producer.setter
    def producer(self, text: str) -> None:
        self.time = f"{text}\n"

    @property
    def summary(self) -> dict[str, str | int]:
        facts: dict[str, str | int] = {"bmodel version": f"B.{self.version}", "chip": self.chip}
        facts["producer" if self.producer else "create time"] = self.time.strip()
        return facts

    def all_stages(self) -> list[tuple[Bm168xNet, Bm168xStage]]:
        """Every stage with its net, in file order."""
        return [(net, stage) for net in self.nets for stage in net.stages]

    @property
    def weight_sets(self) -> tuple[Buffer, ...]:
        blocks = {id(stage.coefficients): stage.coefficients for _, stage in self.all_stages()}
        return tuple({digest(block): block for block in blocks.values() if len(block)}.values())

    def stages(self) -> tuple[Stage, ...]:
        return tuple(_summary(self.chip, net, index, stage) for index, (net, stage) in enumerate(self.all_stages()))

    def note(self, line: int, text: str) -> None:
        for _, stage in self.all_stages():
            stage.layers = with_note(stage.layers.decode(), line, text).encode()

    def check(self, file: StrPath | None = None) -> None:
        """Every number that a reader or the runtime relies on.

        Raises:
            FileFormatError: naming file, net, stage and value.
        """
        from bmcompiler.bmodel.bm168x_check import check_model

        check_model(self, file)

    def parts(self, file: StrPath | None = None) -> list[Buffer]:
        from bmcompiler.bmodel.bm168x_message import encode

        self.check(file)
        return encode(self, file)

    def pieces(self) -> Iterator[tuple[str, Buffer]]:
        """Per stage a model file of its own, the commands of each group, and the coefficients."""
        for number, net in enumerate(self.nets):
            for place, stage in enumerate(net.stages):
                name = f"bm_net{number}_stage{place}"
                alone = replace(self, nets=[replace(net, stages=[stage])], neuron_size=0)
                yield f"{name}.bmodel", b"".join(alone.parts())
                for index, group in enumerate(stage.groups):
                    yield f"{name}_group{index}.tiu", group.tiu
                    yield f"{name}_group{index}.gdma", group.gdma
                if len(stage.coefficients):
                    yield f"{name}_coeff.bin", stage.coefficients

    def select(self, stage: int) -> Bm168xModel:
        known = self.all_stages()
        if not 0 <= stage < len(known):
            raise UsageError(f"there is no program {stage}", remedy=f"the file has 0 to {len(known) - 1}")
        net, chosen = known[stage]
        return replace(self, nets=[replace(net, stages=[chosen])], neuron_size=0)

    def static_part(self) -> Bm168xModel:
        from bmcompiler.bmodel.bm168x_static import static_part

        return static_part(self)

    def apart(self, names: Sequence[str], kept: Collection[str]) -> Bm168xModel:
        from bmcompiler.bmodel.bm168x_nets import apart

        return apart(self, names, kept)

    def combined(self, others: Iterable[BModel], name: str | None = None) -> Bm168xModel:
        from bmcompiler.bmodel.bm168x_nets import combined

        return combined(self, others, name)


def _summary(chip: str, net: Bm168xNet, index: int, stage: Bm168xStage) -> Stage:
    dynamic = any(isinstance(subnet, TpuSubnet) and subnet.dynamic for subnet in stage.subnets)
    lines = tuple(_describe(chip, subnet) for subnet in stage.subnets) if len(stage.subnets) > 1 else ()
    notes = stage.layers.decode(errors="replace")
    return Stage(
        net.name,
        index,
        tuple(tensor_info(tensor, stage) for tensor in stage.inputs),
        tuple(tensor_info(tensor, stage) for tensor in stage.outputs),
        len(stage.coefficients),
        sum(_instruction_bytes(subnet) for subnet in stage.subnets if isinstance(subnet, TpuSubnet)),
        stage.ctx_size,
        lines,
        4 * stage.cpu_mem_size,
        dynamic,
        stage.io_size,
        mode_name(net.address_mode),
        note_in(notes, PICTURES),
        note_in(notes, SIZES),
        note_in(notes, RANGES),
    )


def mode_name(mode: int) -> str:
    """An address mode as tools say it."""
    return ADDRESS_MODES[mode] if 0 <= mode < len(ADDRESS_MODES) else f"{mode}, which is not known"


def _instruction_bytes(subnet: TpuSubnet) -> int:
    """Bytes of commands, or of the code they are made from; commands of other chips are in `source`."""
    foreign = [group.get(key, b"") for group in subnet.source.get("cmd_group", []) for key in _COMMANDS]
    return subnet.ir_length + sum(map(len, foreign)) + sum(len(group.tiu) + len(group.gdma) for group in subnet.groups)


def tensor_info(tensor: Bm168xTensor, stage: Bm168xStage) -> TensorInfo:
    """A boundary tensor as sessions see it: its offset counts from the start of neuron memory, or of io memory."""
    inside = stage.ctx_address <= tensor.address < stage.ctx_address + stage.ctx_size
    kept = stage.io_address <= tensor.address <= stage.io_address + stage.io_size - tensor.size
    return TensorInfo(
        tensor.name,
        tensor.shape,
        FORMAT_OF[tensor.dtype],
        tensor.address - (stage.io_address if kept else stage.ctx_address) if inside or kept else 0,
        scale=tensor.scale,
        zero_point=tensor.zero_point,
        layout=STORE_MODES[tensor.store_mode] if tensor.store_mode else "",
        kept=kept,
    )


def _describe(chip: str, subnet: TpuSubnet | CpuSubnet) -> str:
    names = [", ".join(tensor.name for tensor in tensors) for tensors in (subnet.inputs, subnet.outputs)]
    if isinstance(subnet, CpuSubnet):
        kind = f"host, {'custom ' if subnet.custom else ''}layer {subnet.op_type}, {len(subnet.parameters)} bytes"
    elif subnet.dynamic:
        kind = f"device, commands made at run time from {subnet.ir_length} bytes"
    elif subnet.source.get("cmd_group"):
        kind = f"device, {_instruction_bytes(subnet)} bytes of commands"
    else:
        tiu, gdma = (sum(count(chip, one, group[one]) for group in subnet.groups) for one in STREAMS)
        kind = f"device, {tiu} TIU and {gdma} GDMA commands in {len(subnet.groups)} groups"
    tensors = f": {names[0]} -> {names[1]}" if any(names) else ""
    return f"subnet {subnet.id}: {kind}{tensors}, next {subnet.next}"


def read(data: memoryview, file: StrPath) -> Bm168xModel:
    """A model from the content of a file; coefficients are views of `data`.

    Raises:
        FileFormatError: truncated or malformed, or the coefficients do not have the SHA-256 the file says.
        UnsupportedError: encrypted coefficients, branches between subnets.
    """
    from bmcompiler.bmodel.bm168x_message import decode

    if len(data) < HEADER:
        raise damaged(f"the header needs {HEADER} bytes, the file has {len(data)}", file)
    header, description, binary = (int.from_bytes(data[at : at + 4], "little") for at in (4, 8, 12))
    if header != HEADER:
        raise damaged(f"the header says it has {header} bytes, not {HEADER}", file)
    if HEADER + description + binary > len(data):
        raise damaged(f"{HEADER + description + binary} bytes are announced, the file has {len(data)}", file)
    section = data[HEADER + description : HEADER + description + binary]
    model = decode(data[HEADER : HEADER + description], section, file)
    model.check(file)
    return model
