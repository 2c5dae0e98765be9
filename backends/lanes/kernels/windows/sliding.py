"""What ops with a window sliding over rows and columns share: rules, tiles with their halo, padding, fields.

Padding of a few rows and columns is the command's work; what is wider than its fields say, or has another value than
it adds, is filled into local memory around the tile. Steps that its fields cannot say make tiles of a single row or
column, which need none.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from bmcompiler.backends.lanes.build import Frame, LaneBuild
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import LocalKernel, contents_of, dims4, is_activation, item_bytes
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.windows import Geometry, Window
from bmcompiler.codegen.build import dense_strides, extents
from bmcompiler.codegen.tiling import Axis, Box, Buffer
from bmcompiler.codegen.window import WindowAxis
from bmcompiler.ir import Value
from bmcompiler.target import OpT, rule

Windows = tuple[WindowAxis, WindowAxis]


class Slide(NamedTuple):
    """The input of one tile.

    Attributes:
        source: what is read of the input; frame: (top, bottom, left, right) rows and columns to fill around it.
        shape: the local tensor, frame included. geometry: of the command.
    """

    source: Box
    frame: Frame
    shape: Shape
    geometry: Geometry


class SlidingKernel(LocalKernel[OpT]):
    """Base: subclasses say which windows slide over which input."""

    @rule("The input must be an activation")
    def computed_input(self, op: OpT) -> bool:
        return is_activation(op.operands[0])

    @rule("Windows must be at most {kernel.chip.most_size} rows and columns large")
    def window_range(self, op: OpT) -> bool:
        return max(self.taps(op)) <= self.chip.most_size

    @rule("Dilations must be between 1 and {kernel.most_distance} on both axes", got="dilations")
    def dilation_range(self, op: OpT) -> bool:
        return all(1 <= d <= self.most_distance for d in self.dilations(op))

    @rule("Every window must reach into the input", got="pads")
    def windows_see_input(self, op: OpT) -> bool:
        return all(axis.reaches(out) for axis, out in zip(self.windows(op), op.type.shape[2:]))

    @rule("Padding beyond {kernel.chip.most_pad} zeros must not stand beside zeros inserted into the input", got="pads")
    def padding_range(self, op: OpT) -> bool:
        inserts = any(axis.insert for axis in self.windows(op))
        return not inserts or not self.wide_padding(op)

    @property
    def most_distance(self) -> int:
        """Of the taps of a window, or of the pixels between which zeros are inserted."""
        return self.chip.most_step + 1

    # -- what the op says ----------------------------------------------------------------------------------------------
    def windows(self, op: OpT) -> Windows:
        """The window along h and along w, in the command's terms."""
        raise TypeError(f"{type(self).__name__} has no windows")

    def taps(self, op: OpT) -> tuple[int, int]:
        """Rows and columns of the window."""
        raise TypeError(f"{type(self).__name__} has no taps")

    def dilations(self, op: OpT) -> tuple[int, int]:
        """Distances of the taps of a window (rows, columns)."""
        return (1, 1)

    def border(self, op: OpT) -> int:
        """Bits of an element of the padding."""
        return 0

    def fills(self, op: OpT) -> bool:
        """Whether padding is filled into local memory."""
        return self.wide_padding(op)

    def wide_padding(self, op: OpT) -> bool:
        """Whether the fields of the command are too small for the padding."""
        needs = [axis.need(0, out) for axis, out in zip(self.windows(op), op.type.shape[2:])]
        return any(max(need.before, need.after) > self.chip.most_pad for need in needs)

    # -- tiles ---------------------------------------------------------------------------------------------------------
    def spatial_axes(self, op: OpT) -> tuple[Axis, Axis]:
        """Axes h and w of the grid."""
        most = [axis.most() if axis.stride <= self.chip.most_step else 1 for axis in self.windows(op)]
        _, _, h, w = op.type.shape
        return Axis(h, 1, most[0]), Axis(w, 1, most[1])

    def slide(self, op: OpT, box: Box, channels: tuple[int, int], fill_rows: bool = False) -> Slide:
        """Input and geometry of the tile `box` of the result that reads `channels` of the input.

        Args: fill_rows: whether padding above and below is filled into local memory even where the command could do it.
        """
        axes = self.windows(op)
        whole = [interval == (0, size) for interval, size in zip(box[2:], op.type.shape[2:])]
        passed = [all(whole) and axis.stride <= self.chip.most_step for axis in axes]
        reads = [axis.need(*interval) for axis, interval in zip(axes, box[2:])]
        needs = [a.whole(i[1]) if passes else read for a, i, passes, read in zip(axes, box[2:], passed, reads)]
        source: Box = (box[0], channels, *((need.lo, need.hi) for need in needs))
        pads = needs[0].before, needs[0].after, needs[1].before, needs[1].after
        frame = pads if self.fills(op) else (*pads[:2], 0, 0) if fill_rows else (0, 0, 0, 0)
        n, c, h, w = extents(source)
        shape = (n, c, h + frame[0] + frame[1], w + frame[2] + frame[3])
        top, bottom, left, right = (pad - filled for pad, filled in zip(pads, frame))
        # the step of a single window passes over what is not read behind it: the engine counts windows by it
        steps = zip(axes, needs, reads, box[2:])
        down, across = (axis.stride if hi - lo > 1 or need != read else 1 for axis, need, read, (lo, hi) in steps)
        below, beside = (axis.insert if need.hi - need.lo > 1 else 0 for axis, need in zip(axes, needs))
        geometry = Geometry(
            (shape[2], shape[3]),
            self.taps(op),
            self.dilations(op),
            (top, bottom, left, right),
            (down, across),
            (below, beside),
        )
        return Slide(source, frame, shape, geometry)

    def input_buffer(self, op: OpT, slides: Sequence[Slide], axes: str = "nchw") -> Buffer:
        """How the input of a tile is loaded: several parts of one image each lie in the image slots of words."""
        item, shape = item_bytes(op.operands[0]), slides[0].shape
        whole = shape if len(slides) == 1 else (len(slides), *shape[1:])
        partial = any(self.is_partial(op, slide) for slide in slides)

        def load(build: LaneBuild, address: int) -> None:
            if partial:
                frames = [self.unloaded(op, slide) for slide in slides]
                build.fill_frame(address, whole, item, self.border(op), tuple(map(max, zip(*frames))))
            for slot, slide in enumerate(slides):
                self.load_slide(op, build, slide, address + slot)

        value: Value = op.operands[0]
        moved = sum(prod(extents(slide.source)) for slide in slides)
        plain = len(slides) == 1 and not partial and extents(slides[0].source) == shape
        contents = contents_of(value, dims4(value), slides[0].source) if plain else None
        return Buffer(self.chip.aligned_bytes(whole, item), axes, moved * item, load, contents=contents)

    def is_partial(self, op: OpT, slide: Slide) -> bool:
        """Whether something of the local tensor is not loaded."""
        return any(self.unloaded(op, slide))

    def unloaded(self, op: OpT, slide: Slide) -> Frame:
        """(top, bottom, left, right): in how many rows and columns something of the local tensor is not loaded."""
        return slide.frame

    def plain_input(self, op: OpT, slide: Slide, axes: str = "nchw") -> Buffer:
        """The input of a tile without what is to fill around it: what other ops may leave in local memory."""
        value: Value = op.operands[0]
        return self.machine.activation_in(value, dims4(value), slide.source, axes)

    def emit_frame(self, op: OpT, build: LaneBuild, slide: Slide, source: int, target: int) -> None:
        """Copy the plain input of a tile into the local tensor of the slide, and fill what is around it."""
        chip, item, (top, _, left, _) = self.chip, item_bytes(op.operands[0]), slide.frame
        words, whole = chip.words_of(extents(slide.source), item), chip.words_of(slide.shape, item)
        word, written = chip.word_item(item), chip.plane(target, slide.shape, item)
        steps, read = chip.aligned_strides(whole, item=word), chip.plane(source, extents(slide.source), item)
        build.fill(Words(target, whole, within=written, item=word), chip.repeated(self.border(op), item))
        inner = Words(target + word * (top * whole[3] + left), words, steps, within=written, item=word)
        build.copy(Words(source, words, within=read, item=word), inner)

    def load_slide(self, op: OpT, build: LaneBuild, slide: Slide, address: int) -> None:
        """Emit the loads of the input of one tile."""
        value: Value = op.operands[0]
        item, strides = item_bytes(value), dense_strides(dims4(value))
        start = sum(lo * stride for (lo, _), stride in zip(slide.source, strides))
        build.load(build.source(value) + start * item, extents(slide.source), strides, item, address, slide.frame)

    def window(self, op: OpT) -> Window:
        """The same geometry for evaluation, on the whole input."""
        axes = self.windows(op)
        _, _, *out = op.type.shape
        needs = [axis.need(0, size) for axis, size in zip(axes, out)]
        return Window(
            self.taps(op),
            (axes[0].stride, axes[1].stride),
            self.dilations(op),
            (axes[0].insert + 1, axes[1].insert + 1),
            (axes[0].pad, axes[1].pad),
            (needs[0].after, needs[1].after),
            (out[0], out[1]),
        )
