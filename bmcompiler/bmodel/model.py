"""What every compiled model has, whatever the chip: stages with named inputs and outputs, weights, programs."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from bmcompiler.errors import FileFormatError, UnsupportedError
from bmcompiler.files.store import StrPath, forget_pages

Buffer = bytes | memoryview

MAX_RANK = 8
MAX_BYTES = 1 << 32  # device memory of the largest chip served (bm1880.md 13)

# Element formats: number -> (name, bits). 0 to 9 are those of kernel headers (bm1880.md 1), the others occur in files
# only (bm1684.md 10).
FORMATS = {
    0: ("float32", 32),
    1: ("float16", 16),
    2: ("int32", 32),
    3: ("int16", 16),
    4: ("int8", 8),
    5: ("int4", 4),
    6: ("int2", 2),
    7: ("int1", 1),
    8: ("uint16", 16),
    9: ("uint8", 8),
    10: ("uint32", 32),
    11: ("bfloat16", 16),
    12: ("uint4", 4),
}
FMT_F32, FMT_I8, FMT_U8 = 0, 4, 9


def damaged(reason: str, file: StrPath | None) -> FileFormatError:
    """The error for a file whose parts contradict each other: only another copy of it helps."""
    return FileFormatError(reason, file=file, remedy="the file is damaged; compile or copy it again")


def digest(data: Buffer) -> str:
    """SHA-256 of a buffer, hexadecimal: equal weight sets have equal digests. A mapped file leaves memory again."""
    found = hashlib.sha256(data).hexdigest()
    forget_pages(data)
    return found


@dataclass
class TensorInfo:
    """An input or output of a program.

    Attributes:
        name: source name; inputs of vendor files have none ("").
        shape: sizes, outermost first.
        fmt: element format, a key of `FORMATS`.
        offset: bytes from the start of the activation (neuron) memory, or of the io memory where it is kept.
        threshold: real magnitude that maps to 128, 0 = unknown (bm1880.md 11.2).
        scale, zero_point: real value of one integer step, and the integer that stands for 0; a scale of 0 means that
            the threshold says it. Real values are rounded halves away from zero with a scale (bm1684.md 7.2), upwards
            with a threshold (bm1880.md 11.2).
        layout: how images are packed in device memory ("4N"); "" = plain rows.
        kept: whether it lies in io memory, which belongs to its net alone and lasts from run to run.
    """

    name: str
    shape: tuple[int, ...]
    fmt: int = FMT_I8
    offset: int = 0
    threshold: float = 0.0
    scale: float = 0.0
    zero_point: int = 0
    layout: str = ""
    kept: bool = False
    source: tuple[str, bytes] | None = field(default=None, repr=False, compare=False)  # message kind and bytes as read

    @property
    def dtype(self) -> str:
        """Element type as numpy names it ("int8")."""
        return FORMATS[self.fmt][0] if self.fmt in FORMATS else f"format {self.fmt}"

    @property
    def stored(self) -> str:
        """Type of device values: that of the elements; of bfloat16, which numpy has not, the type of its bits."""
        return "uint16" if self.dtype == "bfloat16" else self.dtype

    @property
    def size(self) -> int:
        """Bytes the tensor occupies; a format without a known width counts one byte per element."""
        bits = FORMATS[self.fmt][1] if self.fmt in FORMATS else 8
        return (math.prod(self.shape) * bits + 7) // 8

    def check(self, where: str, memory: int, file: StrPath | None) -> None:
        """Refuse sizes that cannot be, and tensors outside `memory` bytes.

        Raises:
            FileFormatError: naming file, `where`, and the value.
        """
        if not 1 <= len(self.shape) <= MAX_RANK:
            raise FileFormatError(f"{where} has {len(self.shape)} dimensions, 1 to {MAX_RANK} are possible", file=file)
        if any(not 1 <= dim <= MAX_BYTES for dim in self.shape):
            raise FileFormatError(f"{where} has an impossible shape {list(self.shape)}", file=file)
        if not (math.isfinite(self.threshold) and self.threshold >= 0):
            raise FileFormatError(f"{where} has an impossible threshold {self.threshold}", file=file)
        if self.offset < 0 or self.offset + self.size > memory:
            raise damaged(
                f"{where} lies outside the activation memory "
                f"(bytes {self.offset} to {self.offset + self.size} of {memory})",
                file,
            )


@dataclass(frozen=True)
class Stage:
    """One program of a net: a fixed set of input shapes. Sizes in bytes of device memory.

    `subnets`: one line for each part of a program that changes between device and host; () when there is one part.
    `host_size`: bytes of host memory for what the parts on the host hand to each other. `dynamic`: the device makes the
    commands while it runs. `io_size`: bytes of the io memory of its net. `address_mode`: how files say where inputs and
    outputs lie; "" where there is one way. `pictures`: how they become the input (`inputs.preprocessing`), `sizes`:
    which of the net's vary (`sizes.note`), `ranges`: how large values of inputs are (`inputs.ranges`); "" = not said.
    """

    net: str
    index: int
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    weight_size: int
    instruction_size: int
    neuron_size: int
    subnets: tuple[str, ...] = ()
    host_size: int = 0
    dynamic: bool = False
    io_size: int = 0
    address_mode: str = ""
    pictures: str = ""
    sizes: str = ""
    ranges: str = ""


class BModel(ABC):
    """A compiled model file in memory."""

    container: ClassVar[str]
    producer: str
    """Free text that says what made the file, with version and options; "" = not said."""

    @property
    @abstractmethod
    def target(self) -> str:
        """Name of the target plugin that knows the chip."""

    @property
    @abstractmethod
    def summary(self) -> dict[str, str | int]:
        """Facts about the file as a whole for reports: container, version, chip, ..."""

    @abstractmethod
    def stages(self) -> tuple[Stage, ...]:
        """All programs, in file order."""

    @property
    @abstractmethod
    def weight_sets(self) -> tuple[Buffer, ...]:
        """The distinct blocks of weights, in file order."""

    @abstractmethod
    def parts(self, file: StrPath | None = None) -> Iterable[Buffer]:
        """The bytes of the file, in order. Raises FileFormatError when a reader would refuse them."""

    @abstractmethod
    def pieces(self) -> Iterator[tuple[str, Buffer]]:
        """(file name, content) of everything worth looking at on its own; names are safe in any folder."""

    @abstractmethod
    def select(self, stage: int) -> BModel:
        """A model with that one program. Raises UsageError when there is none of that number."""

    def note(self, line: int, text: str) -> None:  # noqa: B027 -- kinds of files without a place for it say nothing
        """Say in each program what stands on a line of its notes (`bmodel.layers`); "" takes it back."""

    def static_part(self) -> BModel:
        """The model before what the device makes commands for at run time. Raises UnsupportedError when that is all."""
        return self

    def apart(self, names: Sequence[str], kept: Collection[str]) -> BModel:
        """The programs of the one net as nets of these names, with the same weights.

        Args: kept: nets whose inputs and outputs have memory of their own, which lasts between launches.

        Raises UnsupportedError for a kind of file that has no such nets.
        """
        raise UnsupportedError(f"model files for {self.target} hold programs of one net")

    def combined(self, others: Iterable[BModel], name: str | None = None) -> BModel:
        """One model with the programs of all. Raises UnsupportedError when the kind of file does not allow it."""
        raise UnsupportedError(f"files of kind '{self.container}' cannot be combined")
