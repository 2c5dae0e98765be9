"""What a compilation can be told, as typed fields; commands and functions share it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypeVar, cast, get_args

from bmcompiler import defaults
from bmcompiler.errors import UsageError
from bmcompiler.plugins.registry import as_declared
from bmcompiler.spelling import spelled
from bmcompiler.told import Told, all_told, documented, told

if TYPE_CHECKING:
    import numpy as np
    import onnx

    from bmcompiler.parallel import Pool

Path_ = str | os.PathLike[str]
Network: TypeAlias = "Path_ | bytes | onnx.ModelProto | Callable[..., object]"
"""A network in a file or in memory: ONNX, or a PyTorch module, said as something to call, for torch may be missing."""
Numbers = float | Sequence[float]
Shapes = Sequence[Sequence[int]]
"""One shape per network input, in the net's input order."""
Method = Literal["kl", "max", "percentile", "mse"]
"""How a threshold is chosen from the magnitudes that calibration has seen."""
IoType = Literal["float", "f32", "int8"]
Judged: TypeAlias = "str | Callable[[Mapping[str, np.ndarray], Mapping[str, np.ndarray]], tuple[float, int]]"
"""What outputs decide: a name of `evaluation.decisions`, or a function (outputs, float outputs) -> (kept, of)."""
Level = Literal[0, 1, 2]
_CheckWord = Literal["auto", "never", "always"]
Check = _CheckWord | int
"""Whether a program is proven, or with how many samples."""
_T = TypeVar("_T")

METHODS: tuple[Method, ...] = get_args(Method)
PIXELS = ("as-trained", "rgb-nchw", "bgr-nchw", "rgb-nhwc", "bgr-nhwc")
IO_TYPES: tuple[IoType, ...] = get_args(IoType)
LEVELS: tuple[Level, ...] = get_args(Level)


def as_level(value: int) -> Level:
    """An optimisation level. Raises UsageError for others than 0, 1 and 2."""
    for level in LEVELS:
        if value == level:
            return level
    raise UsageError(f"{spelled('opt')} must be 0, 1 or 2, got {value!r}")


_MOST_CHECKED = 1_000_000


def as_check(value: str | int) -> Check:
    """How a program is proven. Raises UsageError for what is neither one of the words nor a number of samples."""
    number = value if isinstance(value, str) and value.isascii() and value.isdigit() else ""
    if number and len(number) <= len(str(_MOST_CHECKED)):
        value = int(number)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_CHECKED:
        return value
    for word in get_args(_CheckWord):
        if value == word:
            found: _CheckWord = word
            return found
    known = f"auto, never, always or a number of samples up to {_MOST_CHECKED:,}"
    raise UsageError(f"{spelled('check')} must be {known}, got {str(value)[:20]!r}")


class Progress(Protocol):
    """Wraps a long loop and yields its items again: `bmcompiler.cli.common.progress` draws a bar on a terminal."""

    def __call__(self, items: Iterable[_T], label: str, total: int, /) -> Iterator[_T]:
        """`total` is the number of items."""


_FREE = "the chip's own"


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """How pictures become input values: value = (pixel - mean) * scale per channel, pixels 0..255.

    The picture is scaled to `resize` (the input's size by default), then the middle of the input's size is cut out:
    `resize=(256, 256), keep_aspect=True` on a 224x224 input is the usual preparation of classification nets. Scaling
    is bilinear over all source pixels (no aliasing), by Pillow. The orientation noted by cameras is applied.
    `letterbox=114, scale=1 / 255` is that of detectors; it is scaled as OpenCV does (`inputs.placing`).
    """

    mean: Numbers = told(0.0, "Subtracted from pixels; a number, or one per channel.", metavar="M|M,M,M", unset="0")
    scale: Numbers | None = told(None, "Factor after that, likewise.", metavar="S|S,S,S", unset="1")
    std: Numbers | None = told(None, "Divisor in place of {scale}, likewise.", metavar="S|S,S,S")
    channel_order: str = told(
        "rgb",
        "Order of the channels, and of the numbers above; bgr for most nets of Caffe and OpenCV. Inputs with one "
        "channel get gray.",
        choices=("rgb", "bgr"),
        unset="rgb",
    )
    resize: tuple[int, int] | None = told(
        None,
        "Height and width that pictures are scaled to, before the middle is cut out.",
        metavar="HxW|to-input",
        unset="the input's",
    )
    keep_aspect: bool = told(False, "Scale both axes alike to cover that size, and cut off what sticks out.")
    letterbox: Numbers | None = told(
        None,
        "Scale both axes alike until the picture fits, and fill the rest with this pixel, as detectors are trained "
        "(gray 114 by Ultralytics).",
        metavar="[V|V,V,V]",
        bare="114",
    )
    pad: str | None = told(
        None,
        "Where {letterbox} fills: around the picture, or below it and to the right.",
        choices=("center", "bottom-right"),
        unset="center",
    )
    layout: str = told(
        "auto",
        "Of the input; auto looks where its 1 or 3 channels are.",
        choices=("auto", "nchw", "nhwc"),
        unset="auto",
    )

    camera: tuple[int, int] | None = told(
        None,
        "Height and width of a camera's pictures, which the model takes whole and scales itself, "
        "between the nearest pixels.",
        metavar="HxW",
    )
    camera_nearest: bool = told(False, "It takes the nearest pixels themselves: quicker, and coarse.")

    cut: tuple[int, int] | None = told(
        None, "Height and width that the model makes of its input itself: out of the middle, or of a camera's picture."
    )

    def __post_init__(self) -> None:
        for what in ("resize", "camera"):
            if not getattr(self, what):
                object.__setattr__(self, what, None)
        for each in all_told(type(self)):
            object.__setattr__(self, each.name, each.taken(getattr(self, each.name)))
        if self.scale is not None and self.std is not None:
            raise UsageError("scale and std say the same thing", remedy="give one of them: scale = 1 / std")
        for what, size in (("resize", self.resize), ("camera", self.camera)):
            if size is not None and not all(type(n) is int and 1 <= n <= 1 << 14 for n in size):
                raise UsageError(f"{what} must be two sizes from 1 to {1 << 14}, got {size}")
        if self.camera_nearest and self.camera is None:
            raise UsageError(f"{spelled('camera_nearest')} says how {spelled('camera')} is scaled, which is not given")
        for what, numbers in (("mean", self.mean), ("scale", self.scale), ("std", self.std)):
            _check_numbers(what, numbers)
        self._check_letterbox()

    def _check_letterbox(self) -> None:
        if self.letterbox is None:
            if self.pad is not None:
                raise UsageError(f"{spelled('pad')} says where {spelled('letterbox')} fills, which is not given")
            return
        for other in ("resize", "keep_aspect"):
            if getattr(self, other):
                reason = f"{spelled('letterbox')} and {spelled(other)} exclude each other"
                raise UsageError(reason, remedy="a letterbox shows the whole picture, scaled to the input's size")
        found = numbers_of(self.letterbox)
        if not found or not all(n in range(256) for n in found):
            shown = ",".join(f"{n:g}" for n in found)
            raise UsageError(f"{spelled('letterbox')} must be a pixel, whole numbers from 0 to 255, got {shown}")


@documented
@dataclass(frozen=True)
class ImageOptions(Preprocessing):
    """Image files, and how they become input values (`Preprocessing`)."""

    path: Path_ = field(metadata={"told": Told("Image file, or folder searched with its subfolders, in name order.")})


def numbers_of(numbers: Numbers) -> list[float]:
    """One number, or those of the channels."""
    return [float(numbers)] if isinstance(numbers, int | float) else [float(n) for n in numbers]


def _check_numbers(what: str, numbers: Numbers | None) -> None:
    if numbers is None:
        return
    found = numbers_of(numbers)
    if not found or not all(math.isfinite(n) and abs(n) < 1e30 for n in found):
        raise UsageError(f"{what} must be one number or one per channel, got {numbers}")
    if what != "mean" and not all(abs(n) > 1e-30 for n in found):
        raise UsageError(f"{what} must not be 0")


@documented
@dataclass(kw_only=True)
class ModuleOptions:
    """What the compilation of a module can be told."""

    target: str = told(
        defaults.TARGET, "Chip to compile for.", python="To be given; without it a warning says so.", metavar="CHIP"
    )
    quantize: str | None = told(None, "Precision, as far as the chip has it.", choices=defaults.PRECISIONS, unset=_FREE)
    data: Path_ | Mapping[str, np.ndarray] | np.ndarray | None = told(
        None,
        "Samples, values as the net was trained on: .npz, .npy, or a folder of them.",
        python="Or arrays by input name, samples on axis 0; one array for a net with one input.",
    )
    images: ImageOptions | None = told(None, "Images as samples, in place of {data}.")
    preprocess: Preprocessing | None = told(
        None,
        "How pictures become the input, as the network was trained; the model file says it.",
        unset="that of images",
    )
    fuse_preprocess: str | None = told(
        None,
        "The model takes bytes of pictures, of the size they are scaled to, in this order and layout (as-trained where "
        "none is said), and cuts out the middle, subtracts and scales itself.",
        choices=PIXELS,
        bare=PIXELS[0],
        metavar="[FORMAT]",
    )
    limit: int | None = told(
        None, "Only the first N samples, in the order of the file or of file names.", metavar="N", least=1, unset="all"
    )
    table: Path_ | None = told(None, "Calibration table, in place of {data}.")
    method: Method | None = told(
        None, "How a threshold is chosen from the magnitudes of samples.", choices=METHODS, unset=_FREE
    )
    opt: Level = told(2, "0: serial commands; 1: transfers overlap; 2: all.", choices=LEVELS)
    pipeline: str | None = told(
        None, "Passes to run, in place of the chip's; on the command line, help lists and explains them."
    )
    quant_table: Path_ | None = told(
        None, "How each layer computes in int8: read where the file exists, else written.", metavar="FILE"
    )
    io_dtype: IoType | None = told(
        None,
        "Inputs and outputs of an int8 net (targets with real scales); f32 is the same as float.",
        choices=IO_TYPES,
        unset="float",
    )
    max_error: float | None = told(
        None,
        "How far the worst group of output channels may be from float in int8, of other samples, too, at any cost; in "
        "f16 and bf16, how far outputs may be where the other of both takes what one does not hold (default 0.5).",
        metavar="PERCENT",
        above=0,
        unset="2, if it takes at most a quarter more cycles, else 10, if at most half more; and 99 % of decisions kept",
    )
    decisions: Judged = told(
        "auto",
        "What outputs decide: classes, strings, scores, heat, boxes, detections, embedding, norm (nothing), or "
        "module:function (outputs, float outputs) -> (kept, of).",
        python="Or such a function.",
        metavar="KIND",
        unset="told from structure and values",
    )
    max_cycles: float | None = told(
        None,
        "How many times the cycles of the cheapest int8 program accuracy may cost.",
        metavar="FACTOR",
        least=1,
    )
    print_ir_after: str | None = told(
        None, "Print the IR after a pass, to stderr.", python="That is, hand it to `log`.", metavar="PASS|all"
    )
    verify_each: bool = told(False, "Verify the IR after every pass.")
    save_ir: Path_ | None = told(None, "Write the final IR (.mlir, weights beside it).", written=True)
    timing_profile: object = told(
        None,
        "Another timing model, by name, or parameters for it as JSON or pairs; 'help' lists them.",
        python="What `analysis.timing_profile.profile_for` gives for such words.",
        metavar="NAME|FILE.json|KEY=VALUE,...",
    )
    check: Check = told(
        "auto",
        "Prove the program before it is written: run it on one sample, or N, in the simulator and by what the network "
        "means; every bit must be equal. auto: where that takes under a fifth of the compilation, or 2 s (int8: 10 s).",
        metavar="auto|never|always|N",
    )
    keep_bad: Path_ | None = told(
        None,
        "Where a check fails, keep the layer's IR, weights, inputs and program in this folder, to reproduce it without "
        "the net.",
        metavar="DIR",
        written=True,
    )
    log: Callable[[str], None] = told(print, "Receives printed IR.")
    progress: Progress | None = told(None, "Wraps long loops, see `Progress`.")
    pool: Pool | None = told(
        None,
        "Computes what calibration and the choice of modes do per sample (`parallel.open_pool`); the result does not "
        "depend on it.",
        unset="this process",
    )

    def __post_init__(self) -> None:
        """Raise UsageError for values that no target takes."""
        for each in all_told(type(self)):
            setattr(self, each.name, each.taken(getattr(self, each.name)))
        self.target = as_declared("bmcompiler.targets", self.target)
        self.check = as_check(self.check)
        for given in (self.images, self.preprocess):
            camera = getattr(given, "camera", None)
            if camera is not None and self.fuse_preprocess is None:
                raise UsageError(f"{spelled('camera')} is what {spelled('fuse_preprocess')} takes, which is not given")
        if self.io_dtype == "f32":  # one word in model files
            self.io_dtype = "float"


@documented
@dataclass(kw_only=True)
class Options(ModuleOptions):
    """What a compilation of files can be told: how they are read, and the rest."""

    name: str | None = told(None, "Name of the net in the model file.", unset="that in the file")
    shapes: Shapes | Sequence[Shapes] | str = told(
        (),
        "Shapes of the inputs in their order, all in one list: [[1,3,224,224]].",
        python="Or several such lists, for a program each, or text with ranges (`bmcompiler.sizes.syntax`).",
    )
    outputs: Sequence[str] | None = told(
        None, "Cut the net at these tensors or layers; they become its outputs.", metavar="A,B", unset="the net's own"
    )

    @property
    def programs(self) -> Sequence[Shapes | None]:
        """The shapes that each program's inputs have; None for those in the file."""
        if not self.shapes:
            return [None]
        if isinstance(self.shapes, str):
            from bmcompiler.sizes.syntax import parse_shapes

            return parse_shapes(self.shapes)
        if all(isinstance(size, int) for shape in self.shapes for size in shape):
            return [cast(Shapes, self.shapes)]
        return cast(Sequence[Shapes], self.shapes)
