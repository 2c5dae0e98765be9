"""Weights that are no numbers are refused as a network is read: a chip's ReLU would make finite results of NaN."""

from __future__ import annotations

import numpy as np

from bmcompiler.errors import FileFormatError
from bmcompiler.ir import Module, Operation, Value
from bmcompiler.ir.keys import WEIGHT
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.elementwise import Binary
from bmcompiler.ops.places.index import Gather


def need_finite_weights(module: Module) -> None:
    """Look at the float constants that ops compute with.

    1. Weights (`TensorOp.weight_operands`) are finite.
    2. Other operands of sums, products and the like are not NaN, nor are tables that rows are taken from (embeddings);
       infinity may stand there, as masks and bounds have it.

    Raises FileFormatError naming the layer, the tensor, how many numbers are wrong and where the first one is.
    """
    for op in module.main.ops:
        if not isinstance(op, TensorOp):
            continue
        weights = {value for name in op.weight_operands for value in [getattr(op, name)] if value is not None}
        for value in op.operands:
            made = value.op
            if made is None or made.name != WEIGHT or not value.type.is_float:
                continue
            if value in weights:
                _need(module, op, value, infinite=False)
            elif isinstance(op, (Binary, Gather)):
                _need(module, op, value, infinite=True)


def _need(module: Module, op: Operation, value: Value, *, infinite: bool) -> None:
    assert value.op is not None, "weights are made by an op"
    key = value.op.attributes["key"]
    array = module.weights[key]
    if _finite(array):
        return
    wrong = np.isnan(array) if infinite else ~np.isfinite(array)
    if not wrong.any():
        return
    at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    what = "NaN" if np.isnan(array[wrong]).all() else "infinite" if np.isinf(array[wrong]).all() else "NaN or infinite"
    many = int(np.count_nonzero(wrong))
    raise FileFormatError(
        f"{many} of the {array.size} numbers of '{key}' {'is' if many == 1 else 'are'} {what}, "
        f"the first one at {[int(i) for i in at]}",
        layer=op.label,
        kind=op.title,
        remedy="export the model again from a checkpoint whose weights are finite",
    )


def _finite(array: Array) -> bool:
    """One sum tells it of nearly all weights; where numbers are so large that it overflows, each is looked at."""
    if array.dtype.itemsize < 4:
        array = array.astype(np.float32)
    with np.errstate(all="ignore"):
        return bool(np.isfinite(array.sum())) or bool(np.isfinite(array).all())
