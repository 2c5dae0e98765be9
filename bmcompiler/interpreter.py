"""Runs IR op by op through `evaluate`: the reference for every backend, and the executor of CPU subnets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from bmcompiler.errors import BMError, RuntimeUseError, UnsupportedError
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ir.keys import WEIGHT
from bmcompiler.numeric.blas import one_blas_thread
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.bf16 import meaning

if TYPE_CHECKING:
    import numpy as np

    from bmcompiler.target import Kernel, Target

Observer = Callable[[Value, "np.ndarray"], None]
"""Sees every computed value (and the inputs) once; used by calibration."""
Compute = Callable[[Operation, "list[np.ndarray]"], "tuple[np.ndarray, ...]"]
"""(op, arrays of its operands) -> its results, as `evaluate_op` gives them."""


def evaluate_op(op: Operation, arrays: list[np.ndarray], target: Target | None = None) -> tuple[np.ndarray, ...]:
    """Results of one op, in its declared result types; with a target as its device computes them, if that runs the op.

    Raises UnsupportedError for ops without meaning.
    """
    import numpy as np

    if not isinstance(op, TensorOp):
        raise UnsupportedError("has no evaluate", layer=op.label, kind=op.name)
    with np.errstate(all="ignore"), one_blas_thread:  # sums in an order that no thread count changes
        try:
            kernel = _device_kernel(op, target)
            out = meaning(op, *arrays) if kernel is None else kernel.evaluate(op, *arrays)
        except BMError as error:
            raise error.located(layer=op.label, kind=op.title) from None
    results = out if isinstance(out, tuple) else (out,)
    for result, value in zip(results, op.results, strict=True):
        if result.shape != value.shape or result.dtype != value.type.numpy:
            raise TypeError(
                f"{op.label} ({op.short_name}): evaluate gave {result.dtype}{list(result.shape)}, declared {value.type}"
            )
    return tuple(results)


def _device_kernel(op: TensorOp, target: Target | None) -> Kernel[Any] | None:
    if target is None:
        return None
    from bmcompiler.codegen.partition import cpu_reason

    return target.kernel_for(op) if cpu_reason(op, target) is None else None


def run_function(
    module: Module,
    function: Function,
    inputs: Mapping[str, np.ndarray],
    observer: Observer | None = None,
    target: Target | None = None,
    compute: Compute | None = None,
) -> dict[str, np.ndarray]:
    """Evaluate a function. Values are dropped after their last use.

    Args:
        inputs: one array per input name, in exactly the declared shape and element type.
        observer: called with every input and every result.
        target: ops that its device runs are computed in the device's arithmetic (order of float sums, flushing...).
        compute: takes the place of `evaluate_op`, for who knows results already.

    Returns:
        output name -> array.

    Raises:
        RuntimeUseError: an input is missing, or has another shape or element type.
    """
    import numpy as np

    values: dict[Value, np.ndarray] = {}
    for name, argument in zip(function.input_names, function.arguments):
        if name not in inputs:
            raise RuntimeUseError(f"input '{name}' is missing; given: {', '.join(inputs) or 'none'}")
        array = np.asarray(inputs[name])
        if array.shape != argument.shape or array.dtype != argument.type.numpy:
            raise RuntimeUseError(
                f"input '{name}' must be {argument.dtype}{list(argument.shape)}, got {array.dtype}{list(array.shape)}"
            )
        values[argument] = array
        if observer is not None:
            observer(argument, array)
    for op, _, results in executed(module, function, values, target, compute):
        if observer is not None:
            for value, array in zip(op.results, results):
                observer(value, array)
    return {name: values[v] for name, v in zip(function.output_names, function.returned)}


def executed(
    module: Module,
    function: Function,
    values: dict[Value, np.ndarray],
    target: Target | None = None,
    compute: Compute | None = None,
) -> Iterator[tuple[Operation, list[np.ndarray], tuple[np.ndarray, ...]]]:
    """Ops in order, each with its operands' arrays and its results'; constants come with those that read them.

    Args:
        values: of the arguments; holds what is still to be read, in the end what the function returns.
        compute: as `run_function` takes it.
    """
    compute = compute or partial(evaluate_op, target=target)
    remaining = {v: len(v.uses) for v in (*function.arguments, *(r for op in function.ops for r in op.results))}
    for op in function.ops[:-1]:
        if op.name == WEIGHT:
            values[op.result] = module.weights[op.attributes["key"]]
            continue
        arrays = [values[v] for v in op.operands]
        results = compute(op, arrays)
        values.update(zip(op.results, results))
        yield op, arrays, results
        for operand in op.operands:
            remaining[operand] -= 1
            if not remaining[operand]:
                del values[operand]


def run_module(
    module: Module,
    inputs: Mapping[str, np.ndarray],
    observer: Observer | None = None,
    target: Target | None = None,
) -> dict[str, np.ndarray]:
    """`run_function` on the main function."""
    return run_function(module, module.main, inputs, observer, target)
