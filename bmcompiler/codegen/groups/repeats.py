"""Where a run repeats itself, as encoders of equal blocks do: what groups cost there is found once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from bmcompiler.codegen.groups.parts import Part
from bmcompiler.codegen.groups.regions import LocalCopier
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.pictures import reads_picture
from bmcompiler.ir import Operation, Value
from bmcompiler.ir.keys import WEIGHT


class Repeats:
    """Equal stretches of one device run have equal keys.

    Args:
        made_at: by value, the place in the run of the op that makes it. readers: places of the ops that read it.
        read_elsewhere: whether it is read outside of the run. sizes: its bytes per lane.
        wholes: figures of each op as one tile, None where it is none. heavy: whether it exceeds local memory.
    """

    def __init__(
        self,
        ops: Sequence[Operation],
        made_at: Mapping[Value, int],
        readers: Mapping[Value, Sequence[int]],
        read_elsewhere: Callable[[Value], bool],
        sizes: Mapping[Value, int],
        wholes: Sequence[Part | None],
        heavy: Sequence[bool],
        copier: LocalCopier,
    ) -> None:
        self.made_at, self.readers, self.read_elsewhere = made_at, readers, read_elsewhere
        self.sizes, self.copier = sizes, copier
        numbers: dict[Hashable, int] = {}
        forms = ((self._form(i, op), _figures(whole), heavy[i]) for i, (op, whole) in enumerate(zip(ops, wholes)))
        self._forms = [numbers.setdefault(form, len(numbers)) for form in forms]

    def key(self, start: int, end: int, beside: Sequence[Value]) -> Hashable:
        """Of the ops from `start` to `end`, and the values `beside` that are alive behind them."""
        alive = tuple((end - self.made_at[value], self.sizes.get(value), value.type.nbytes) for value in beside)
        return tuple(self._forms[start:end]), alive

    def _form(self, index: int, op: Operation) -> Hashable:
        """An op, with what it reads and who reads it as distances; notes aside, arrays as they are printed.

        Whether it reads a picture says which tiles it has.
        """
        attributes = tuple((name, str(value)) for name, value in op.attributes.items() if "." not in name)
        types = tuple((value.shape, value.dtype) for value in (*op.operands, *op.results))
        read = tuple(self._source(index, value) for value in op.operands)
        used = tuple(self._use(index, value) for value in op.results)
        return op.name, attributes, types, read, used, reads_picture(op)

    def _source(self, index: int, value: Value) -> Hashable:
        root = root_of(value)
        if root in self.made_at:
            return index - self.made_at[root]
        return WEIGHT if value.op is not None and value.op.name == WEIGHT else root

    def _use(self, index: int, value: Value) -> Hashable:
        read = tuple(reader - index for reader in self.readers[value])
        return read, self.read_elsewhere(value), self.sizes.get(value), tuple(self.copier.grain(value))


def _figures(whole: Part | None) -> Hashable:
    """What an op takes, without the values that it reads."""
    return whole and (*whole[:5], tuple(load[1:] for load in whole.loads), tuple(box for _, box in whole.boxes))
