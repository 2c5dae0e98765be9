"""The least cycles of a net on the BM1684, whatever its program: python benchmarks/least_cycles.py [NETS...]

Of every convolution the best form that the chip has commands for under the timing profile `silicon`, as if moves, loads
and starts of commands took no time and nothing waited. All taps are channels, so that their cost comes once; several
rows and columns of results may be channels, which fills lanes and multiplies zeros; Winograd's F(2, 3) and F(4, 3)
along one axis or both; products of matrices; windows per channel, their columns of each step apart, and sums of
products element by element. Functions, sums and pools are those of our program with every unit at work. The table is in
units of the roofline, the net's own products with all multipliers at work, and says what the least is made of: these
products in the forms that were chosen (Winograd's are fewer; zeros, empty lanes and transforms count here), what a
position of a window and a group cost besides (7.1 and 1), windows per channel, all else. "starts" is what the starts of
our commands take, and no part of it.

With `--precision int8` every layer counts in the type that the choice of modes gave it (`--tables`, as
benchmarks/bench_groups.py makes them). Those of bytes have four bands of rows in the words of an image, 64 results of a
channel at once and four products in a cycle, as if a band could begin anywhere and no row of two bands were needed
twice; or they are made of floats, which are exact, too. Winograd's transforms of bytes are no bytes: split in two, they
take at least as many products as they spare. "ends" is what follows the sums in the mode of the layer, in the commands
of our program with every unit at work; "convolutions" is the least without ends and all else, so that it holds whatever
becomes of those. Layers that our program joins count as joined, or apart if that takes less. `--layers N` says where
commands take more than that.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from math import ceil, prod
from pathlib import Path
from typing import NamedTuple

from bench_groups import BYTES_PER_CYCLE, THIRD_PARTY, Case, Measured, line, measure

import bmcompiler
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.cycles import PIXELS
from bmcompiler.backends.bm1684.timing_profile import SILICON
from bmcompiler.ops.layers.nn import Convolution, Deconv

NETS = ("ppocr_v4_det", "centerface_480", "yolox_chars")
GROUP = CHIP.lanes * PIXELS
"""Results that are made at once, of words."""
PASS, PAIR = SILICON.arithmetic, SILICON.arithmetic_pair
PHASES = range(1, 9)
CELLS = {2: (4 * PAIR, 4 * PAIR), 4: (12 * PAIR + 6 * PASS, 10 * PAIR + 3 * PASS)}
"""By results of a cell along an axis: what its pixels and its results take to transform, for a group of cells."""
CLIPS = {"": 0, "relu": 1, "relu6": 2}
MOVES = ("conv", "deconv", "matmul", "slice", "split", "concat", "interleave", "upsample", "permute", "pad", "tile")
MOVES += ("to_bands", "regroup_bands", "from_bands", "quantize_bands")
"""Kinds of layers that count nothing, or as convolutions."""


class Arithmetic(NamedTuple):
    """What convolutions compute with: images of a word, products of a lane's result in a cycle, what is besides."""

    images: int
    terms: int
    tap: float
    start: float
    matrix: float

    @property
    def peak(self) -> int:
        """Products in a cycle."""
        return GROUP * self.images * self.terms


FLOATS = Arithmetic(1, 2, SILICON.conv_tap, SILICON.conv_start, SILICON.matrix_start)
BYTES = Arithmetic(4, 4, SILICON.conv_tap_int8, SILICON.conv_start_int8, SILICON.matrix_start_int8)


class Shape(NamedTuple):
    """A convolution: channels, size of the result, taps, steps of rows and of columns."""

    inside: int
    outside: int
    height: int
    width: int
    down: int
    across: int
    steps: tuple[int, int] = (1, 1)

    @property
    def groups(self) -> float:
        """Of results in words, with all lanes full."""
        return self.outside * self.height * self.width / GROUP


class Form(NamedTuple):
    """Cycles of a form, and the part of them that positions and groups cost besides."""

    cycles: float
    besides: float

    def times(self, count: int) -> Form:
        """So often."""
        return Form(self.cycles * count, self.besides * count)


def total(found: Iterator[Form]) -> Form:
    """Of several convolutions."""
    return Form(*map(sum, zip(*found)))


def convolution(kind: Arithmetic, channels: int, depth: int, cells: int, places: int = 1) -> Form:
    """So many commands with one position of a window for each of `cells` results of a channel."""
    groups = places * ceil(channels / CHIP.lanes) * ceil(cells / (PIXELS * kind.images))
    besides = kind.tap + kind.start
    return Form(groups * (ceil(depth / kind.terms) + besides), groups * besides)


def forms(s: Shape, kind: Arithmetic) -> Iterator[Form]:
    """All that make a dense convolution."""
    yield from phased(s, kind)
    yield Form(matrix(s, kind), s.groups * kind.matrix)
    if s.steps == (1, 1) and kind is FLOATS:
        yield from cells_of_results(s)


def phased(s: Shape, kind: Arithmetic) -> Iterator[Form]:
    """Rows and columns of results as channels."""
    for rows, columns in product(PHASES, repeat=2):
        taps = (s.down + (rows - 1) * s.steps[0]) * (s.across + (columns - 1) * s.steps[1])
        cells = ceil(s.height / rows) * ceil(s.width / columns)
        yield convolution(kind, s.outside * rows * columns, s.inside * taps, cells)


def matrix(s: Shape, kind: Arithmetic) -> float:
    """Cycles of a product of matrices, which makes one image of words of bytes, too."""
    return s.groups * (SILICON.matrix_step * s.inside * s.down * s.across / kind.terms + kind.matrix)


def cells_of_results(s: Shape) -> Iterator[Form]:
    """Winograd's algorithm; of cells along both axes the transforms along the second one have more to work on."""
    pixels = s.inside * s.height * s.width / GROUP
    for size, (before, after) in CELLS.items():
        transforms = (pixels * before + s.groups * after) / size
        axes = ((s.down, s.across, s.height, s.width), (s.across, s.down, s.width, s.height))
        for taps, other, along, beside in axes:
            for phases in PHASES if taps == 3 else ():
                cells, depth = ceil(along / size) * ceil(beside / phases), s.inside * (other + phases - 1)
                made = convolution(FLOATS, s.outside * phases, depth, cells, size + 2)
                yield made._replace(cycles=made.cycles + transforms)
        if s.down == s.across == 3:
            made = convolution(
                FLOATS, s.outside, s.inside, ceil(s.height / size) * ceil(s.width / size), (size + 2) ** 2
            )
            yield made._replace(cycles=made.cycles + transforms * (1 + (size + 2) / size))


def dense(s: Shape, kind: Arithmetic) -> Form:
    """The best form; channels that fill no round of lanes may have one of their own, and bytes may be floats."""
    best = min(forms(s, kind))
    whole = s.outside // CHIP.lanes * CHIP.lanes
    if 0 < whole < s.outside:
        parts = (s._replace(outside=count) for count in (whole, s.outside - whole))
        best = min(best, total(min(forms(part, kind)) for part in parts))
    return best if kind is FLOATS else min(best, dense(s, FLOATS))


def windows(s: Shape, kind: Arithmetic) -> float:
    """Of a convolution of each channel, `s.outside` of them.

    A window, or one for the columns of each step; products and sums of the taps; rows and columns of a channel as
    channels; or a product of matrices for each, whose pixels are copied to every tap that reads them: the bus takes
    20 times as long for that as the arithmetic, and counts as if it had no time for it.
    """
    taps, sums = s.down * s.across, PAIR * (1 if kind is FLOATS else 2)  # of bytes they have 16 bits
    step = s.steps[1]
    stepped = taps * (SILICON.window_tap + SILICON.window_step * (step - 1)) + SILICON.window_start
    apart = taps * SILICON.window_tap + step * SILICON.window_start + (step - 1) * sums
    group = s.groups / kind.images
    unfolded = matrix(s._replace(inside=1), kind) + group * taps * PASS
    phases = min(phased(s._replace(inside=1, outside=1), kind)).cycles * s.outside
    return min(group * min(stepped, apart, taps * sums), unfolded, phases)


def shape_of(op: Convolution) -> Shape:
    """Of a transposed convolution that of the one which makes its phases as channels."""
    (_, outside, height, width), (down, across), (by, along) = op.type.shape, op.weight.shape[2:], op.strides
    inside = op.input.shape[1] // op.group
    if isinstance(op, Deconv):
        phases, taps = outside * by * along, (ceil(down / by), ceil(across / along))
        return Shape(inside, phases, ceil(height / by), ceil(width / along), *taps)
    return Shape(inside, outside // op.group, height, width, down, across, (by, along))


class Least:
    """The least of a net that was compiled and measured, in parts that add up, in cycles of the arithmetic."""

    def __init__(self, one: Measured) -> None:
        self.one = one
        ops = one.result.module.main.ops
        self.made = {op.label: op for op in ops if isinstance(op, Convolution)}
        net = bmcompiler.load_network(THIRD_PARTY / f"{one.case.net}.onnx", shapes=[list(one.case.shape)])
        self.of: dict[str, list[Convolution]] = {}
        """The convolutions of the source by the layer of the program that makes them."""
        for op in net.main.ops:
            if isinstance(op, Convolution):
                label = next((label for label in self.made if op.label in label.split("+")), op.label)
                self.of.setdefault(label, []).append(op)

    def kind(self, label: str) -> Arithmetic:
        """Of a layer of the program; what is not found there counts as bytes if the program has any."""
        known = [self.made[label]] if label in self.made else self.made.values()
        return FLOATS if all(op.input.type.is_float for op in known) else BYTES

    def layer(self, label: str) -> tuple[Form, float]:
        """Of the convolutions of a layer: what is dense, joined or apart, and windows per channel."""
        kind, found = self.kind(label), self.of[label]
        channels = [op for op in found if 1 < op.group == op.input.shape[1]]
        others = [op for op in found if op not in channels]
        sliding = sum(windows(shape_of(op)._replace(outside=op.group), kind) for op in channels)
        if not others:
            return Form(0, 0), sliding
        form = total(dense(shape_of(op), kind).times(op.group) for op in others)
        return (min(form, dense(self._joined(label, others), kind)) if len(others) > 1 else form), sliding

    def _joined(self, label: str, ops: list[Convolution]) -> Shape:
        """Several as one: side by side, or one after the other."""
        shapes = [shape_of(op) for op in ops]
        if len({op.input for op in ops}) == 1:
            return shapes[0]._replace(outside=sum(s.outside for s in shapes))
        return shapes[-1]._replace(inside=self.made[label].weight.shape[1])

    def parts(self) -> list[float]:
        """Products, positions, windows per channel; ends of the layers of bytes, all else."""
        layers = [self.layer(label) for label in self.of]
        form, sliding = total(form for form, _ in layers), sum(cycles for _, cycles in layers)
        own = {name for label, ops in self.of.items() for name in (label, *(op.label for op in ops))}
        others = sum(row.macs for row in self.one.result.rows if row.layer not in own) / BYTES.peak
        return [form.cycles - form.besides + others, form.besides, sliding, self._ends(), self._rest()]

    def _ends(self) -> float:
        """What follows the sums of bytes."""
        layers = [x for x in self.one.timing.layers if x.macs and x.name in self.made and self.kind(x.name) is BYTES]
        return sum(layer.compute_bound - layer.macs / BYTES.peak for layer in layers)

    def _rest(self) -> float:
        """Activations of floats, and what are no convolutions."""
        floats = [op for op in self.made.values() if op.type.is_float]
        clips = sum(prod(op.type.shape) / GROUP * PASS * CLIPS[op.activation] for op in floats)
        return clips + sum(x.compute_bound for x in self.one.timing.layers if x.kind not in MOVES)


def row(one: Measured) -> list[str]:
    """A line of the table."""
    parts = Least(one).parts()
    bus = one.compulsory / BYTES_PER_CYCLE[one.case.chip]
    convolutions, least = (max(sum(parts[:count]), bus) for count in (3, len(parts)))
    starts = one.timing.engines[0].commands * SILICON.start
    figures = (one.timing.cycles, least, convolutions, *parts, bus, starts)
    cells = [f"{figure / one.bound:.2f}" for figure in figures]
    return [one.case.net, f"{one.timing.cycles / 1e6:.2f}", f"{one.timing.cycles / least:.2f}", *cells]


def excess(one: Measured, count: int) -> Iterator[str]:
    """The layers whose commands take most over their least, which is that of their products and ends, or all else."""
    least, found = Least(one), []
    for name in {layer.name: None for layer in one.timing.layers}:
        layers = [layer for layer in one.timing.layers if layer.name == name]
        taken, bounds = (sum(getattr(x, field) for x in layers) for field in ("compute", "compute_bound"))
        if name in least.of:
            form, windows = least.layer(name)
            ends = bounds - sum(x.macs for x in layers) / BYTES.peak if least.kind(name) is BYTES else 0
            possible = form.cycles + windows + ends
        else:
            possible = sum(x.compute_bound for x in layers if x.kind not in MOVES)
        found.append((taken - possible, taken, possible, name, ", ".join(x.kind for x in layers)))
    yield "\nTIU cycles over the least, TIU cycles, least"
    for over, taken, possible, name, kinds in sorted(found, reverse=True)[:count]:
        yield f"  {over:9.0f} {taken:9} {possible:9.0f}  {name[:60]} ({kinds})"


HEADINGS = ("net", "Mcycles", "of the least", "of the roofline", "least", "convolutions", "products", "positions")
HEADINGS += ("windows", "ends", "all else", "bus", "starts")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="The least cycles of nets on the BM1684, of the roofline.")
    parser.add_argument("nets", nargs="*", default=NETS, metavar="NET", help="as benchmarks/bench_groups.py has them")
    parser.add_argument("--precision", default="f32", choices=("f32", "int8"))
    parser.add_argument("--tables", type=Path, default=THIRD_PARTY / "tables", help="folder of calibration tables")
    parser.add_argument("--layers", type=int, default=0, metavar="N", help="list the N layers with most over the least")
    given = parser.parse_args()
    print(line(HEADINGS), line("---" for _ in HEADINGS), sep="\n")
    for net in given.nets:
        one = measure(Case(net, "bm1684", given.precision, 1, 2), given.tables, False)
        print(line(row(one)), flush=True)
        for text in excess(one, given.layers) if given.layers else ():
            print(text)


if __name__ == "__main__":
    main()
