"""Pipelines as tables: which passes a chip runs, in which order, at which level and precision, and why there.

    PIPELINE = PipelineTable(IMPORT, SIMPLIFY, Phase("precision", (PassRow("calibrate", "..."), ...)), GROUPS)
    PIPELINE.text("int8", 2)      # "single-precision,absorb-qdq,..."

A chip has one table, in `backends/CHIP/pipeline.py`. What all chips begin with, and how the groups of layers are
found, is here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

LEVELS = (0, 1, 2)
"""Optimisation levels (`--opt`)."""
PHASES = ("import", "simplify", "support", "precision", "layout", "schedule")
"""What a table is divided into, in this order."""
WRITTEN = "written"
"""Stands for a precision where none is chosen: floats have the types that the author of a program wrote."""


@dataclass(frozen=True)
class PassRow:
    """A row of a table: a pass with its options as a pipeline string has them, and why it stands at this place.

    levels, precisions: where it runs; no precisions are all of the chip. chooses: it changes types of floats, so it
    has no place in programs whose types are `WRITTEN`.
    """

    text: str
    why: str
    levels: tuple[int, ...] = LEVELS
    precisions: tuple[str, ...] = ()
    chooses: bool = False

    @property
    def name(self) -> str:
        """The name of the pass."""
        return self.text.partition("{")[0]

    def serves(self, precision: str, level: int) -> bool:
        """Whether it runs there."""
        named = precision in self.precisions or not (self.precisions or (self.chooses and precision == WRITTEN))
        return named and level in self.levels


class Phase:
    """Rows with one purpose, one of `PHASES`."""

    def __init__(self, name: str, *rows: PassRow) -> None:
        self.name, self.rows = name, rows


class PipelineTable:
    """The phases of a chip's pipelines."""

    def __init__(self, *phases: Phase) -> None:
        self.phases = phases

    def __iter__(self) -> Iterator[tuple[str, PassRow]]:
        """(name of the phase, row) in order."""
        return ((phase.name, row) for phase in self.phases for row in phase.rows)

    def text(self, precision: str, level: int) -> str:
        """The pipeline of a precision, or of types that are `WRITTEN`, and a level."""
        return ",".join(row.text for _, row in self if row.serves(precision, level))


IMPORT = Phase(
    "import",
    PassRow(
        "single-precision",
        "all that follows, calibration and integer rules above all, knows one type of floats",
        chooses=True,
    ),
    PassRow("absorb-qdq", "its pairs stand between the ops of the patterns that canonicalize looks for"),
)
SIMPLIFY = Phase(
    "simplify",
    PassRow("canonicalize", "the form that all that follows starts from"),
    PassRow("narrow-borders", "casts at the ends of the net are simplified, and legalize sees the final types"),
    PassRow("narrow-integers", "the ends of the net are narrow: what lies between may be so, too"),
)


def support(legalize: str, unpacked: tuple[str, ...] = ()) -> Phase:
    """What the chip can run at all; `legalize` is the pass with its options.

    unpacked: precisions without products by packed weights; none are all.
    """
    return Phase(
        "support",
        PassRow("dequantize-weights", "products by floats are layers like all others then", precisions=unpacked),
        PassRow(legalize, "ops taken apart make new tensors, which are to get thresholds and types like all others"),
        PassRow("merge-reshapes", "ops taken apart leave reshapes behind each other"),
        PassRow("pixel-shuffles", "a shuffle shows as reshape, permute, reshape once reshapes are merged"),
    )


GROUPS = Phase(
    "schedule",
    PassRow("group-layers{level=1}", "last: groups are made of the ops that are compiled", levels=(1,)),
    PassRow("group-layers", "last: groups are made of the ops that are compiled", levels=(2,)),
)
