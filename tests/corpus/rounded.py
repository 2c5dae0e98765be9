"""How far roundings alone take a network from what it means: each float is moved by half a step of its type at most.

Networks whose norms and differences cancel amplify what their numbers are rounded by; others do not. A bound that is
the same for all would be too wide for these, and too narrow for those.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .graph import run_onnx, value_info

STEPS = {"f32": 2.0**-20, "f16": 2.0**-10, "bf16": 2.0**-7}
"""From one number to the next, as a share; in f32 of a sum of some products, whose order is free."""
LEAST = {precision: 8 * step for precision, step in STEPS.items()}
"""Relative errors that functions may have in any network, by what they compute with in between."""
_LARGEST = {"f32": 3e38, "f16": 65504.0, "bf16": 3e38}
_SMALLEST = {"f32": 1e-38, "f16": 2.0**-24, "bf16": 1e-38}
_SUMS = ("ReduceMean", "ReduceSum", "ReduceL1", "ReduceL2", "GlobalAveragePool", "AveragePool")
"""Ops whose results are sums of as many terms as they have fewer elements."""
_MEANT = {"GlobalAveragePool": np.mean, "ReduceMean": np.mean, "ReduceSum": np.sum}
"""Sums over whole axes, of which it is known what they mean: ONNX Runtime's own of many terms can be far from that."""
_STEP_OF_F32 = 2.0**-23
_EXACT = ("Pow", "Resize")
"""Ops whose constants, exponents and scales, are exact in every type."""


def bounds(
    model: onnx.ModelProto,
    inputs: dict[str, np.ndarray],
    wanted: dict[str, np.ndarray],
    precision: str,
    runs: int = 3,
) -> dict[str, float]:
    """By output, the relative error that is none of the compiler's: four times the largest of some runs with moved
    numbers, and never less than `LEAST`; infinite where roundings alone give no numbers.
    """
    errors = dict.fromkeys(wanted, LEAST[precision] / 4)
    for seed in range(runs):
        found = moved_outputs(model, inputs, precision, np.random.default_rng(seed))
        for name, value in wanted.items():
            error = relative_error(found[name], value)
            errors[name] = max(errors[name], np.inf if np.isnan(error) else error)
    return {name: 4 * error for name, error in errors.items()}


def too_far(
    model: onnx.ModelProto,
    inputs: dict[str, np.ndarray],
    wanted: dict[str, np.ndarray],
    found: dict[str, np.ndarray],
    precision: str,
    least: float = 0.0,
) -> str | None:
    """The first output that is farther from what is wanted than roundings explain, and never nearer than `least`.

    What seems too far is asked of more runs: where a network chooses (the nearest point, the largest score), one
    rounding in many changes much.
    """
    errors = {key: relative_error(filled_rows(np.asarray(found[key]), value), value) for key, value in wanted.items()}
    if all(error <= max(LEAST[precision], least) for error in errors.values()):
        return None
    for runs in (3, 20):
        known = {name: max(each, least) for name, each in bounds(model, inputs, wanted, precision, runs).items()}
        far = [name for name, error in errors.items() if known[name] < np.inf and not error <= known[name]]
        if not far:
            return None
    return f"{far[0]}: {errors[far[0]]:.3g} of its length from ONNX Runtime, at most {known[far[0]]:.3g}"


def filled_rows(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """A result without the rows of -1 that fill the room of a list whose length depends on values."""
    count = len(wanted) if wanted.ndim else 0
    filled = wanted.dtype.kind == "i" and found.ndim == wanted.ndim and found.shape[1:] == wanted.shape[1:]
    return found[:count] if filled and (found[count:] == -1).all() else found


def relative_error(found: np.ndarray, wanted: np.ndarray) -> float:
    """The length of a difference as a part of that of what is wanted: 0 of nothing, infinite where sizes differ."""
    if found.size != wanted.size or not wanted.size:
        return 0.0 if found.size == wanted.size else float("inf")
    wanted, found = wanted.astype(np.float64), np.asarray(found, np.float64).reshape(wanted.shape)
    with np.errstate(all="ignore"):
        return float(np.linalg.norm(found - wanted) / (np.linalg.norm(wanted) + 1e-6 * wanted.size**0.5))


def moved(
    value: np.ndarray, precision: str, random: np.random.Generator, roundings: float | np.ndarray = 1
) -> np.ndarray:
    """Floats, each by up to half a step larger or smaller; infinite beyond the range of the type.

    The results of f32 sums are moved by as many steps as `roundings`, one number for all or one for each.
    """
    if value.dtype != np.float32:
        return value
    step = np.maximum(STEPS[precision], _STEP_OF_F32 * roundings)
    near = value * (1 + step * random.uniform(-0.5, 0.5, value.shape))
    near = near + _SMALLEST[precision] * random.uniform(-0.5, 0.5, value.shape)
    with np.errstate(over="ignore"):
        return np.where(np.abs(near) > _LARGEST[precision], near * np.inf, near).astype(np.float32)


def _roundings(terms: np.ndarray, sums: np.ndarray) -> float:
    """Steps that sums of one term after another are off by: those of a walk, and of one sign an eighth of
    their number, as equal terms (of a map that saturates) are rounded alike.
    """
    count = terms.size / max(sums.size, 1)
    lengths = np.abs(terms.sum(dtype=np.float64)), np.abs(terms).sum(dtype=np.float64)
    return max(count**0.5, count / 8) if lengths[0] > 0.999 * lengths[1] else count**0.5


def _steps_off(node: onnx.NodeProto, given: dict[str, np.ndarray], sums: np.ndarray) -> float | np.ndarray:
    """Steps of f32 that each sum of ONNX Runtime is from what it means, twice: `moved` goes half of them either way."""
    if node.op_type not in _MEANT:
        return 0
    terms, *axes = (given[name] for name in node.input if name)
    over = [axis for each in node.attribute if each.name == "axes" for axis in each.ints]
    over += [axis for each in axes for axis in each.tolist()]
    if node.op_type == "GlobalAveragePool":
        over = list(range(2, terms.ndim))
    meant = _MEANT[node.op_type](terms.astype(np.float64), axis=tuple(over) if over else None)
    if np.size(meant) != sums.size:  # without axes some leave their input as it is
        return 0
    off = np.abs(sums - np.reshape(meant, sums.shape))
    return 2 * off / np.maximum(np.abs(sums), _SMALLEST["f32"]) / _STEP_OF_F32


def moved_outputs(
    model: onnx.ModelProto, inputs: dict[str, np.ndarray], precision: str, random: np.random.Generator
) -> dict[str, np.ndarray]:
    """The outputs of a network where inputs, constants and each node's results are moved."""
    exact = {name for node in model.graph.node if node.op_type in _EXACT for name in node.input}
    fixed = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    values = {name: moved(value, precision, random) for name, value in inputs.items()}
    values |= {name: value if name in exact else moved(value, precision, random) for name, value in fixed.items()}
    for node in model.graph.node:
        given = {name: values[name] for name in node.input if name}
        graph = helper.make_graph(
            [node],
            "node",
            [value_info(name, value) for name, value in given.items() if name not in fixed],
            [helper.make_empty_tensor_value_info(name) for name in node.output],
            [numpy_helper.from_array(value, name) for name, value in given.items() if name in fixed],
        )
        one = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
        results = run_onnx(one, {name: value for name, value in given.items() if name not in fixed})
        steps: float | np.ndarray = 1
        if node.op_type in _SUMS:
            steps = np.maximum(_roundings(given[node.input[0]], results[0]), _steps_off(node, given, results[0]))
        values |= {name: moved(value, precision, random, steps) for name, value in zip(node.output, results)}
    return {out.name: values[out.name] for out in model.graph.output}
