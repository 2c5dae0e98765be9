"""What a compilation can be told, as typed fields; commands and functions share it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypeVar, cast, get_args

from bmcompiler import defaults
from bmcompiler.errors import UsageError
from bmcompiler.spelling import spelled

if TYPE_CHECKING:
    import numpy as np

    from bmcompiler.inputs import ImageOptions
    from bmcompiler.parallel import Pool

Path_ = str | os.PathLike[str]
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
IO_TYPES: tuple[IoType, ...] = get_args(IoType)
LEVELS: tuple[Level, ...] = get_args(Level)
_CHOICES: dict[str, tuple[str | int, ...]] = {"opt": LEVELS, "method": METHODS, "io_dtype": IO_TYPES}


def as_level(value: int) -> Level:
    """An optimisation level. Raises UsageError for others than 0, 1 and 2."""
    for level in LEVELS:
        if value == level:
            return level
    raise UsageError(f"{spelled('opt')} must be 0, 1 or 2, got {value!r}")


def as_check(value: str | int) -> Check:
    """How a program is proven. Raises UsageError for what is neither one of the words nor a number above 0."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    for word in get_args(_CheckWord):
        if value == word:
            found: _CheckWord = word
            return found
    raise UsageError(f"{spelled('check')} must be auto, never, always or a number of samples, got {value!r}")


class Progress(Protocol):
    """Wraps a long loop and yields its items again: `bmcompiler.cli.common.progress` draws a bar on a terminal."""

    def __call__(self, items: Iterable[_T], label: str, total: int, /) -> Iterator[_T]:
        """`total` is the number of items."""


@dataclass(kw_only=True)
class ModuleOptions:
    """What the compilation of a module can be told; see `bmnet-compile --help` for the same in words.

    Attributes:
        target: name of the chip.
        quantize: precision, one of the target's `precisions`; None for its own.
        data: calibration samples, real values: an .npz or .npy file, a folder of them, or arrays by input name, samples
            on axis 0.
        images: images as calibration samples, in place of data.
        limit: how many of the samples are used, the first ones; None for all.
        table: calibration table file, in place of data.
        method: calibration method, None for the pipeline's own.
        opt: 0 serial commands, 1 transfers overlap, 2 all.
        pipeline: pass pipeline in place of the target's.
        quant_table: quantization table (`quant.mode_table`) that says how layers compute; written where there is none.
        io_dtype: "float" (the same as "f32") or "int8" inputs and outputs of an int8 net, None for the target's own.
        max_error: percent that the worst group of output channels of an int8 net may be from float, whatever it costs.
        max_cycles: how many times the cycles of the cheapest int8 program may be spent on accuracy.
        metric: what outputs decide, as `evaluation.decisions` takes it: "auto" is told from structure and values.
        timing_profile: parameters of the timing model (`analysis.timing_profile.profile_for`) that plans are made by,
            None for the chip's own; of chips whose planner has such parameters.
        print_ir_after: name of a pass after which the IR goes to `log`, or "all".
        verify_each: verify the IR after every pass.
        save_ir: file for the final IR (.mlir, weights beside it).
        check: whether every program is proven before it is written: run on the simulator and by `evaluate` on one
            sample, or on so many; bits must be equal. "auto": where that takes little of the compilation.
        keep_bad: folder for what reproduces a program that was found wrong, without the rest of the network.
        log: receives printed IR.
        progress: wraps long loops, see `Progress`.
        pool: computes what calibration and the choice of modes do per sample (`parallel.open_pool`), None for this
            process; the result does not depend on it.
    """

    target: str = defaults.TARGET
    quantize: str | None = None
    data: Path_ | Mapping[str, np.ndarray] | None = None
    images: ImageOptions | None = None
    limit: int | None = None
    table: Path_ | None = None
    method: Method | None = None
    opt: Level = 2
    pipeline: str | None = None
    quant_table: Path_ | None = None
    io_dtype: IoType | None = None
    max_error: float | None = None
    max_cycles: float | None = None
    metric: Judged = "auto"
    print_ir_after: str | None = None
    verify_each: bool = False
    save_ir: Path_ | None = None
    timing_profile: object = None
    check: Check = "auto"
    keep_bad: Path_ | None = None
    log: Callable[[str], None] = print
    progress: Progress | None = None
    pool: Pool | None = None

    def __post_init__(self) -> None:
        """Raise UsageError for values that no target takes."""
        for name, known in _CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in known:
                raise UsageError(
                    f"{spelled(name)} must be {', '.join(map(str, known[:-1]))} or {known[-1]}, got {value!r}"
                )
        self.check = as_check(self.check)
        if self.io_dtype == "f32":  # one word in model files
            self.io_dtype = "float"


@dataclass(kw_only=True)
class Options(ModuleOptions):
    """What a compilation of files can be told: how they are read, and the rest.

    Attributes:
        name: name of the net, None for that in the file.
        shapes: one shape per input; or several such lists, for a model with a program per list.
        outputs: names of the tensors or layers that become the outputs, None for the net's own.
    """

    name: str | None = None
    shapes: Shapes | Sequence[Shapes] = ()
    outputs: Sequence[str] | None = None

    @property
    def programs(self) -> Sequence[Shapes | None]:
        """The shapes that each program's inputs have; None for those in the file."""
        if not self.shapes:
            return [None]
        if all(isinstance(size, int) for shape in self.shapes for size in shape):
            return [cast(Shapes, self.shapes)]
        return cast(Sequence[Shapes], self.shapes)
