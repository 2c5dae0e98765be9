"""Models of the BM168x family: nets, stages, subnets of both engines' commands (bm1684.md 10)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from bmcompiler.bmodel.model import FORMATS, BModel, Buffer, Stage, TensorInfo, digest
from bmcompiler.errors import UnsupportedError
from bmcompiler.files import StrPath

COMMAND_BYTES = 128
FIRST_ADDRESS = 0x1_0510_0000  # first address a compiler may assign (bm1684.md 1.1)
STORE_MODES = ("1N", "2N", "4N")
IMAGES_PER_WORD = (1, 2, 4)  # by store mode
FORMAT_OF = {name: number for number, (name, _) in FORMATS.items()}


class CommandGroup(NamedTuple):
    """Commands of both engines, 128 bytes each, whose ids count from 1: one group of a model file."""

    tiu: bytes
    gdma: bytes


@dataclass
class Bm1684Tensor:
    """A tensor in device memory at the boundary of a stage or subnet.

    Attributes:
        dtype: element type as numpy names it ("float32", "int8", ...).
        address: absolute, as the compiler assigned it; the runtime relocates it.
        store_mode: 0 plain rows (1N); 1 and 2: two int16 or four int8 images share a word (2N, 4N; bm1684.md 4.2).
        scale: real value of one integer step, for inputs and outputs alike; 1.0 when there is none. Files hold its
            reciprocal for inputs of the net: the vendor's tools multiply by the number in both directions.
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
        next: ids of the subnets that follow; [-1] ends the net.
        dynamic: the commands are made on the device from the stage's intermediate code, bytes `ir_offset` to
            `ir_offset + ir_length` of it; `groups` is empty then.
    """

    groups: list[CommandGroup]
    inputs: list[Bm1684Tensor]
    outputs: list[Bm1684Tensor]
    id: int = 0
    next: list[int] = field(default_factory=lambda: [-1])
    dynamic: bool = False
    ir_offset: int = 0
    ir_length: int = 0


@dataclass
class CpuSubnet:
    """A layer on the host: its number among the vendor's CPU layers and the bytes that describe it."""

    op_type: int
    parameters: Buffer
    inputs: list[Bm1684Tensor]
    outputs: list[Bm1684Tensor]
    id: int = 0
    next: list[int] = field(default_factory=lambda: [-1])
    custom: bool = False


@dataclass
class Location:
    """Where the weights of one layer lie: bytes `offset` to `offset + size` of the coefficients."""

    name: str
    offset: int
    size: int


@dataclass
class Bm1684Stage:
    """The program of a net for one set of input shapes.

    Attributes:
        ctx_address, ctx_size: neuron memory as the compiler assigned it.
        coeff_address, coefficients: weights and where they go; b"" when there are none.
        check_code: SHA-256 of the coefficients as read; b"" = take it from the coefficients.
        cpu_mem_size: elements of host memory that CPU subnets need.
        layers: which commands belong to which layer (`bmcompiler.bmodel.layers`), as text; b"" = not said.
        intermediate: the code of dynamic subnets, kept as it is.
    """

    inputs: list[Bm1684Tensor]
    outputs: list[Bm1684Tensor]
    ctx_address: int
    ctx_size: int
    subnets: list[TpuSubnet | CpuSubnet]
    coeff_address: int = FIRST_ADDRESS
    coefficients: Buffer = b""
    check_code: bytes = b""
    locations: list[Location] = field(default_factory=list)
    cpu_mem_size: int = 0
    layers: bytes = b""
    intermediate: Buffer = b""


@dataclass
class Bm1684Net:
    """A network: one stage per set of input shapes."""

    name: str
    stages: list[Bm1684Stage]


@dataclass
class Bm1684Model(BModel):
    """A BM168x model: nets with stages of their own.

    Attributes:
        chip: as the file says it ("BM1684"); version: of the container; time: free text, fixed unless asked for.
        neuron_size: bytes of neuron memory of the largest stage; 0 = take it from the stages.
    """

    nets: list[Bm1684Net]
    chip: str = "BM1684"
    version: str = "2.2"
    time: str = "not recorded"
    neuron_size: int = 0

    container: ClassVar[str] = "bm1684"

    @property
    def target(self) -> str:
        return self.chip.lower()

    @property
    def summary(self) -> dict[str, str | int]:
        facts: dict[str, str | int] = {"bmodel version": f"B.{self.version}", "chip": self.chip}
        facts["create time"] = self.time.strip()
        return facts

    def all_stages(self) -> list[tuple[Bm1684Net, Bm1684Stage]]:
        """Every stage with its net, in file order."""
        return [(net, stage) for net in self.nets for stage in net.stages]

    @property
    def weight_sets(self) -> tuple[Buffer, ...]:
        distinct: dict[str, Buffer] = {}
        for _, stage in self.all_stages():
            if len(stage.coefficients):
                distinct.setdefault(digest(stage.coefficients), stage.coefficients)
        return tuple(distinct.values())

    def stages(self) -> tuple[Stage, ...]:
        return tuple(
            Stage(
                net.name,
                index,
                tuple(tensor_info(tensor, stage) for tensor in stage.inputs),
                tuple(tensor_info(tensor, stage) for tensor in stage.outputs),
                len(stage.coefficients),
                sum(len(group.tiu) + len(group.gdma) for group in groups_of(stage)),
                stage.ctx_size,
            )
            for index, (net, stage) in enumerate(self.all_stages())
        )

    def parts(self, file: StrPath | None = None) -> Iterable[Buffer]:
        raise UnsupportedError("models of this kind cannot be written yet")

    def pieces(self) -> Iterator[tuple[str, Buffer]]:
        raise UnsupportedError("models of this kind cannot be taken apart yet")

    def select(self, stage: int) -> Bm1684Model:
        raise UnsupportedError("models of this kind cannot be taken apart yet")


def groups_of(stage: Bm1684Stage) -> list[CommandGroup]:
    """The command groups of all device subnets of a stage, in order."""
    return [group for subnet in stage.subnets if isinstance(subnet, TpuSubnet) for group in subnet.groups]


def tensor_info(tensor: Bm1684Tensor, stage: Bm1684Stage) -> TensorInfo:
    """A boundary tensor as sessions see it: its offset counts from the start of neuron memory."""
    inside = tensor.address >= stage.ctx_address
    offset = tensor.address - stage.ctx_address if inside else 0
    return TensorInfo(tensor.name, tensor.shape, FORMAT_OF[tensor.dtype], offset)
