"""Which stripes of a device run make and read which boxes of values, and what of it can happen in local memory."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from bmcompiler.codegen.groups.nested import NestedBoxes
from bmcompiler.codegen.groups.regions import LocalCopier, inside, whole_of
from bmcompiler.codegen.groups.slices import Stripe
from bmcompiler.codegen.groups.steps import NEVER, Step
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.tiling import Contents
from bmcompiler.ir import Operation, Value

Reachable = dict[tuple[Contents, Contents], bool]
"""Whether one can be had from the other."""


class Uses:
    """The uses of one run; ops that cost nothing in global memory lose their work (rule 3 of `residency`).

    Attributes:
        gathered: wholes that are made slice by slice for other groups, with the steps that make their parts.
        begins: steps that make the first part of one of them.
        in_global: values that some stripe reads from global memory.

    Args:
        apart: values that are not gathered. reachable: what `reaches` finds, kept for other runs of the same ops.
    """

    def __init__(
        self,
        stripes: Sequence[Stripe],
        steps: Sequence[Step],
        blocks: Callable[[Operation], bool],
        copier: LocalCopier | None,
        apart: set[Value],
        reachable: Reachable,
    ) -> None:
        self.steps, self.copier, self.apart, self._reachable = steps, copier, apart, reachable
        self.requests: dict[Value, list[tuple[int, Contents]]] = defaultdict(list)
        self.made: dict[Value, list[tuple[int, Contents | None]]] = defaultdict(list)
        self.gathered: dict[Contents, list[int]] = {}
        self.in_global: set[Value] = set()
        self._known: dict[Contents, list[int]] = {}
        self._boxes: dict[tuple[str, Value], NestedBoxes] = {}
        self._leave_copies(stripes, blocks)
        self._collect()
        self._gather()
        self.begins = {made[0] for made in self.gathered.values()}
        self._read_from_global(range(len(self.steps)))

    def next_use(self, contents: Contents, index: int) -> int:
        """The first step after `index` that reads what is held, or adds to it; NEVER without one."""
        uses = self._known.get(contents)
        if uses is None:
            requests = self.requests[contents.value]
            if contents.box is None:
                found = {at for at, wanted in requests if self.serves(wanted, contents)}
            else:
                boxes = self._boxes_of("read", contents.value, requests)
                found = {requests[place][0] for place in boxes.within(contents)}
            found.update(self.gathered.get(contents, ()))
            uses = self._known[contents] = sorted(found)
        position = bisect_right(uses, index)
        return uses[position] if position < len(uses) else NEVER

    def serves(self, inner: Contents, outer: Contents) -> bool:
        """Whether all of one is in the other, in this layout or one that can be made of it."""
        if inside(inner, outer):
            return True
        wholes = inner.box is None and outer.box is None and inner.value is outer.value
        return wholes and self.copier is not None and self.copier.reshapes(outer, inner)

    def reaches(self, inner: Contents, outer: Contents) -> bool:
        """Whether one can be had from the other, in place or by a copy, both ways."""
        if inner == outer:
            return True
        key = inner, outer
        if key not in self._reachable:
            copier = self.copier
            self._reachable[key] = (
                copier is not None and self.serves(inner, outer) and copier.copy(outer, inner) is not None
            )
        return self._reachable[key]

    def made_before(self, value: Value, index: int) -> int:
        """The first step at which global memory may have all of a value: after the last one that makes some of it."""
        return max((at + 1 for at, _ in self.made.get(value, ()) if at < index), default=0)

    def leave_apart(self, value: Value) -> int:
        """No longer gather a value; returns the first step that makes some of it. Uses of others stay as they are."""
        self.apart.add(value)
        (whole,) = (gathered for gathered in self.gathered if gathered.value is value)
        self._known.pop(whole, None)
        first, *_ = self.gathered.pop(whole)
        reading = [index for index, step in enumerate(self.steps) if value in map(root_of, step.op.operands)]
        self._read_from_global(reading)
        return first

    def _leave_copies(self, stripes: Sequence[Stripe], blocks: Callable[[Operation], bool]) -> None:
        """Rule 3 of `residency`."""
        made: dict[Value, Contents] = {}

        def is_there(contents: Contents | None) -> bool:
            found = None if contents is None else made.get(contents.value)
            return contents is not None and found is not None and self.reaches(contents, found)

        for stripe, step in zip(stripes, self.steps):
            if step.work is None:
                continue
            sliced = stripe.box is not None
            if not sliced and not blocks(step.op) and not all(is_there(b.contents) for b in step.work.inputs):
                step.work = None
            else:
                made.update(
                    (b.contents.value, whole_of(b.contents)) for b in step.work.outputs if b.contents is not None
                )

    def _collect(self) -> None:
        for index, step in enumerate(self.steps):
            outputs = step.work.outputs if step.work else ()
            layouts = {b.contents.value: b.contents for b in outputs if b.contents is not None}
            for value in step.op.results:
                self.made[value].append((index, layouts.get(value)))
            for buffer in step.work.inputs if step.work else ():
                if buffer.contents is not None:
                    self.requests[buffer.contents.value].append((index, buffer.contents))

    def _gather(self) -> None:
        """Rule 4 of `residency`."""
        for value, made in self.made.items():
            parts = [contents for _, contents in made if contents is not None and contents.box is not None]
            if len(parts) < len(made) or value in self.apart or not parts:
                continue
            groups = {self.steps[index].group for index, _ in made}
            whole = whole_of(parts[0])
            later = [contents for index, contents in self.requests[value] if self.steps[index].group not in groups]
            fits = any(self.reaches(contents, whole) for contents in later)
            if fits and all(self.reaches(part, whole) for part in parts):
                self.gathered[whole] = [index for index, _ in made]

    def _read_from_global(self, numbers: Iterable[int]) -> None:
        """What steps read in another layout than it is made in."""
        for index in numbers:
            step = self.steps[index]
            inputs = [buffer for buffer in step.work.inputs if not buffer.coefficient] if step.work else []
            wanted = [buffer.contents for buffer in inputs if buffer.contents is not None]
            found = [contents.value for contents in wanted if self._comes_from_within(index, contents)]
            operands = [root_of(value) for value in step.op.operands]
            # a buffer that says what it holds may serve an op that reads it twice; others may hold any operand
            reads = operands if len(wanted) < len(inputs) else [contents.value for contents in wanted]
            for value in dict.fromkeys(operands):
                if found.count(value) < max(1, reads.count(value)):
                    self.in_global.add(value)

    def _comes_from_within(self, index: int, contents: Contents) -> bool:
        """Whether the stripes before make what a step wants, in local memory."""
        group = self.steps[index].group
        parts = self.made.get(contents.value, [])
        boxes = self._boxes_of("made", contents.value, parts)
        for place in (*boxes.wholes, *boxes.around(contents)):
            made_at, made = parts[place]
            if made is None or made_at >= index:
                continue
            if (made.box is None or self.steps[made_at].group == group) and self.reaches(contents, made):
                return True
        whole = whole_of(contents)
        made_by = self.gathered.get(whole)
        return made_by is not None and made_by[-1] < index and self.reaches(contents, whole)

    def _boxes_of(self, what: str, value: Value, parts: Sequence[tuple[int, Contents | None]]) -> NestedBoxes:
        key = what, value
        if key not in self._boxes:
            self._boxes[key] = NestedBoxes([contents for _, contents in parts])
        return self._boxes[key]
