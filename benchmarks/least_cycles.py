"""The least cycles of a net in f32 on the BM1684, whatever its program: python benchmarks/least_cycles.py [NETS...]

Of every convolution the best form that the chip has commands for under the timing profile `silicon`, as if moves, loads
and starts of commands took no time and nothing waited. All taps are channels, so that their cost comes once; several
rows and columns of results may be channels, which fills lanes and multiplies zeros; Winograd's F(2, 3) and F(4, 3)
along one axis or both; products of matrices; windows per channel, and sums of products element by element. Functions,
sums and pools are those of our program with every unit at work. The table is in units of the roofline, the net's own
products with all multipliers at work, and says what the least is made of: these products in the forms that were chosen
(Winograd's are fewer; zeros, empty lanes and transforms count here), what a position of a window and a group cost
besides (7.1 and 1), windows per channel, all else. "starts" is what the starts of our commands take, and no part of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from math import ceil, prod
from pathlib import Path
from typing import NamedTuple

from bench_groups import THIRD_PARTY, Case, Measured, line, measure

import bmcompiler
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.cycles import PIXELS
from bmcompiler.backends.bm1684.timing_profile import SILICON
from bmcompiler.ops.nn import Convolution, Deconv

NETS = ("ppocr_v4_det", "centerface_480", "yolox_chars")
GROUP = CHIP.lanes * PIXELS
"""Results that are made at once."""
BESIDES = SILICON.conv_tap + SILICON.conv_start
PASS, PAIR = SILICON.arithmetic, SILICON.arithmetic_pair
PHASES = (1, 2, 4, 8)
CELLS = {2: (4 * PAIR, 4 * PAIR), 4: (12 * PAIR + 6 * PASS, 10 * PAIR + 3 * PASS)}
"""By results of a cell along an axis: what its pixels and its results take to transform, for a group of cells."""
CLIPS = {"": 0, "relu": 1, "relu6": 2}
MOVES = ("conv", "deconv", "matmul", "slice", "split", "concat", "interleave", "upsample", "permute", "pad", "tile")
"""Kinds of layers that count nothing, or as convolutions."""


class Shape(NamedTuple):
    """A convolution: channels, size of the result, taps, step."""

    inside: int
    outside: int
    height: int
    width: int
    down: int
    across: int
    step: int

    @property
    def groups(self) -> float:
        """Of results, with all lanes full."""
        return self.outside * self.height * self.width / GROUP


class Form(NamedTuple):
    """Cycles of a form, and the part of them that positions and groups cost besides."""

    cycles: float
    besides: float


def convolution(channels: int, depth: int, cells: int, places: int = 1) -> Form:
    """So many commands with one position of a window for each of `cells` results of a channel."""
    groups = places * ceil(channels / CHIP.lanes) * ceil(cells / PIXELS)
    return Form(groups * (ceil(depth / 2) + BESIDES), groups * BESIDES)


def forms(s: Shape) -> Iterator[Form]:
    """All that make a dense convolution."""
    for rows, columns in product(PHASES, repeat=2):
        taps = (s.down + (rows - 1) * s.step) * (s.across + (columns - 1) * s.step)
        cells = ceil(s.height / rows) * ceil(s.width / columns)
        yield convolution(s.outside * rows * columns, s.inside * taps, cells)
    terms = s.inside * s.down * s.across
    yield Form(s.groups * (SILICON.matrix_step / 2 * terms + SILICON.matrix_start), s.groups * SILICON.matrix_start)
    if s.step == 1:
        yield from cells_of_results(s)


def cells_of_results(s: Shape) -> Iterator[Form]:
    """Winograd's algorithm; of cells along both axes the transforms along the second one have more to work on."""
    pixels = s.inside * s.height * s.width / GROUP
    for size, (before, after) in CELLS.items():
        transforms = (pixels * before + s.groups * after) / size
        axes = ((s.down, s.across, s.height, s.width), (s.across, s.down, s.width, s.height))
        for taps, other, along, beside in axes:
            for phases in PHASES if taps == 3 else ():
                cells, depth = ceil(along / size) * ceil(beside / phases), s.inside * (other + phases - 1)
                made = convolution(s.outside * phases, depth, cells, size + 2)
                yield made._replace(cycles=made.cycles + transforms)
        if s.down == s.across == 3:
            made = convolution(s.outside, s.inside, ceil(s.height / size) * ceil(s.width / size), (size + 2) ** 2)
            yield made._replace(cycles=made.cycles + transforms * (1 + (size + 2) / size))


def dense(s: Shape) -> Form:
    """The best form; channels that fill no round of lanes may have one of their own."""
    whole = s.outside // CHIP.lanes * CHIP.lanes
    best = min(forms(s))
    if not 0 < whole < s.outside:
        return best
    parts = [min(forms(s._replace(outside=count))) for count in (whole, s.outside - whole)]
    return min(best, Form(*map(sum, zip(*parts))))


def windows(s: Shape) -> float:
    """A window per channel, or a product and a sum for each of its taps."""
    taps = s.down * s.across
    window = taps * (SILICON.window_tap + SILICON.window_step * (s.step - 1)) + SILICON.window_start
    return s.groups * min(window, taps * PAIR)


def shape_of(op: Convolution) -> Shape:
    """Of a transposed convolution that of the one which makes its phases as channels."""
    (_, outside, height, width), (down, across), step = op.type.shape, op.weight.shape[2:], op.strides[0]
    inside = op.input.shape[1] // op.group
    if isinstance(op, Deconv):
        taps = ceil(down / step), ceil(across / step)
        return Shape(inside, outside * step**2, ceil(height / step), ceil(width / step), *taps, 1)
    return Shape(inside, outside // op.group, height, width, down, across, step)


def row(one: Measured) -> list[str]:
    """A line of the table."""
    net = bmcompiler.load_network(THIRD_PARTY / f"{one.case.net}.onnx", shapes=[list(one.case.shape)])
    products = besides = channels = 0.0
    for op in net.main.ops:
        if not isinstance(op, Convolution):
            continue
        shape = shape_of(op)
        if op.group == op.input.shape[1] > 1:
            channels += windows(shape._replace(outside=op.group))
        else:
            form = dense(shape)
            products += op.group * (form.cycles - form.besides)
            besides += op.group * form.besides
    ops = [op for op in one.result.module.main.ops if isinstance(op, Convolution)]
    rest = sum(prod(op.type.shape) / GROUP * PASS * CLIPS[op.activation] for op in ops)
    rest += sum(layer.compute_bound for layer in one.timing.layers if layer.kind not in MOVES)
    parts = (products, besides, channels, rest)
    starts = one.timing.engines[0].commands * SILICON.start
    figures = (one.timing.cycles, sum(parts), *parts, starts)
    return [one.case.net, f"{one.timing.cycles / 1e6:.2f}", *(f"{figure / one.bound:.2f}" for figure in figures)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="The least cycles of nets in f32 on the BM1684, of the roofline.")
    parser.add_argument("nets", nargs="*", default=NETS, metavar="NET", help="as benchmarks/bench_groups.py has them")
    headings = ("net", "Mcycles", "of the roofline", "least", "products", "positions", "windows", "all else", "starts")
    print(line(headings), line("---" for _ in headings), sep="\n")
    for net in parser.parse_args().nets:
        print(line(row(measure(Case(net, "bm1684", "f32", 1, 2), Path("unused"), False))), flush=True)


if __name__ == "__main__":
    main()
