"""Weights rounded up or down by what that does to the sums they are part of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from bmcompiler.interpreter import run_function
from bmcompiler.ir import Function, Module, Operation, Quant, Value
from bmcompiler.numeric.arrays import Array, Int8s
from bmcompiler.numeric.blas import one_blas_thread
from bmcompiler.passes.precision.calibrate import tensor_names
from bmcompiler.passes.quantization.formulas import I8
from bmcompiler.passes.quantization.moments import as_matrices, as_weight, has_constant_rows, rows_of

Steps = Sequence[Mapping[str, Array]]
Found = dict[tuple[str, "float | Quant"], "Int8s | None"]
"""Integers by layer name and scale; None where the nearest ones stay."""
_ROWS, _JUDGES = 2048, 256
"""Rows of a layer that are measured, and on how many others its integers are judged."""
_KEPT = 1 << 20
"""Numbers of such others that a layer keeps at most."""
_BLOCK = 32


class WeightRounding:
    """Integers of the weights of each layer, by scale.

    A sum of products is off by row * (integers - reals) * scale. The mean of its square over many rows depends on
    their second moments, and is made smaller by rounding some weights to the other side than the nearest (as AdaRound
    does, Nagel et al. 2020, "Up or Down? Adaptive Rounding for Post-Training Quantization"; here weight by weight,
    `descended`). On rows of samples that were not measured each layer is judged: where they do not confirm the gain,
    its integers are the nearest.

    Layers are convolutions and products with a matrix whose sums have up to 1152 terms.
    """

    def __init__(self, function: Function, found: Found | None = None) -> None:
        names = tensor_names(function)
        self.names = {op: names[op.results[0]][0] for op in function.ops if has_constant_rows(op)}
        self.found: Found = {} if found is None else found
        self.counts: dict[Operation, int] = {}
        self.moments: dict[Operation, Array] = {}
        self.judges: dict[Operation, list[Array]] = {}

    @property
    def layers(self) -> int:
        """How many layers have other integers than the nearest."""
        return len({name for (name, _), each in self.found.items() if each is not None})

    def measure(
        self,
        module: Module,
        function: Function,
        steps: Steps,
        known: Sequence[Mapping[Value, Array]] | None = None,
    ) -> None:
        """Moments and rows of all layers, from the float net on steps of samples. known: what layers read there."""
        for number, step in enumerate(steps):
            observe = self.observer(module, number, len(steps))
            if known is None:
                run_function(module, function, step, observe)
                continue
            for value, array in known[number].items():
                observe(value, array)

    def observer(self, module: Module, number: int, count: int) -> Callable[[Value, Array], None]:
        """Who watches one of `count` steps: the second and every other one are measured, the rest judge."""
        measured, readers = number % 2 == 1, dict[Value, list[Operation]]()
        for op in self.names:
            readers.setdefault(op.operands[0], []).append(op)

        def add(op: Operation, x: Array) -> None:
            rows = rows_of(op, x, _ROWS // (count // 2))
            self.counts[op] = self.counts.get(op, 0) + rows.shape[1]
            self.moments[op] = self.moments.get(op, 0) + rows.transpose(0, 2, 1) @ rows

        def keep(op: Operation, x: Array) -> None:
            most = min(_JUDGES, _KEPT // as_matrices(op, module.weights[_key(op)])[:, :, 0].size)
            self.judges.setdefault(op, []).append(rows_of(op, x, max(1, most // (count - count // 2))))

        def observe(value: Value, array: Array) -> None:
            with one_blas_thread:  # sums in an order that no thread count changes
                for op in readers.get(value, ()):
                    (add if measured else keep)(op, array)

        return observe

    def integers(self, op: Operation, weight: Array, nearest: Int8s, scale: float | Quant | None) -> Int8s:
        """The integers of a layer's weights at a scale; `nearest` where nothing better is known."""
        if op not in self.names or scale is None:
            return nearest
        key = (self.names[op], scale)
        if key not in self.found and op in self.moments:
            self.found[key] = self._better(op, weight / _along(scale, weight.ndim), nearest)
        chosen = self.found.get(key)
        return nearest if chosen is None else chosen

    def _better(self, op: Operation, reals: Array, nearest: Int8s) -> Int8s | None:
        reals, before = (np.ascontiguousarray(as_matrices(op, each), np.float32) for each in (reals, nearest))
        with one_blas_thread:
            after = descended(reals, before, _pulls(self.moments[op], self.counts[op]))
            rows = np.concatenate(self.judges[op], axis=1)
            plain, now = (float(np.square(rows @ (each - reals), dtype=np.float64).sum()) for each in (before, after))
        if not now < plain:
            return None
        return np.ascontiguousarray(as_weight(op, after, nearest.shape).astype(np.int8))


def descended(reals: Array, nearest: Array, pulls: Array) -> Array:
    """Each weight in turn on the side of its real number where the square of the error is least, given all others.

    Args:
        reals: (groups, depth, results), float32. nearest: the integers to begin with. pulls: `_pulls`.
    """
    low, high = np.maximum(np.floor(reals), -I8), np.minimum(np.ceil(reals), I8)
    codes, wrong, depth = nearest.copy(), nearest - reals, reals.shape[1]
    for start in range(0, depth, _BLOCK):
        stop = min(start + _BLOCK, depth)
        excess = pulls[:, start:stop] @ wrong
        inside = pulls[:, start:stop, start:stop, None]
        for k in range(stop - start):
            before, row = nearest[:, start + k], start + k
            best = np.rint(before - excess[:, k])
            np.minimum(np.maximum(best, low[:, row], out=best), high[:, row], out=codes[:, row])
            step = codes[:, row] - before
            excess[:, k + 1 :] += inside[:, k + 1 :, k] * step[:, None]
        wrong[:, start:stop] = codes[:, start:stop] - reals[:, start:stop]
    return codes


def _pulls(moments: Array, rows: int) -> Array:
    """By how much each weight should give way to an error of 1 of another, (groups, depth, depth).

    That is their moment over the weight's own. What rows say of pairs counts half, and less where they are few: in
    other samples, and behind integers, inputs go together less than here. Counted fully, BlazeFace (shifts) found faces
    with an F1 of 97.1 instead of 99.0, though its outputs were nearer to float (docs/accuracy.md).
    """
    depth = moments.shape[1]
    own = np.einsum("gkk->gk", moments)[:, :, None].copy()
    moments = moments * (min(rows, depth) / (min(rows, depth) + depth))
    moments[:, np.arange(depth), np.arange(depth)] = own[:, :, 0]
    return np.divide(moments, own, out=np.zeros_like(moments), where=own > 0)


def _key(op: Operation) -> str:
    weight = op.operands[1].op
    assert weight is not None, "`has_constant_rows` asks for weights"
    return str(weight.attributes["key"])


def _along(scale: float | Quant, rank: int) -> Array | float:
    """A scale to divide weights by."""
    if not isinstance(scale, Quant):
        return scale
    return np.asarray(scale.scales).reshape([-1 if axis == scale.axis else 1 for axis in range(rank)])
