"""Checks for the author of a kernel: is what the chip computes what `evaluate` says, byte for byte?

    from bmcompiler import testing

    def test_my_layer():
        for shape in testing.random_shapes(5, (1, 3), (1, 70), (1, 20), (1, 20)):
            testing.check_op(
                lambda b, x, y: b.customized(x, y, sub_type="MyLayer", output_shapes=[x.shape]),
                [shape, shape],
                target="CHIP",
            )

`check_op` builds a net of the op, compiles it as `bmnet-compile` would (quantized, where the target's default is int8,
with random calibration data), runs it on the simulator, compares with `evaluate`, and looks for races. `check_network`
does the same for a network file. What is wrong is raised as `CheckError`, an AssertionError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bmcompiler.analysis.profile import find_analyzer
from bmcompiler.api import compile_module
from bmcompiler.driver import load_network
from bmcompiler.errors import BMError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ir.keys import TENSOR_NAME
from bmcompiler.ops.builder import Builder
from bmcompiler.options import Method, as_level
from bmcompiler.plugins.registry import lookup
from bmcompiler.proof.compare import different
from bmcompiler.result import Result
from bmcompiler.spelling import spelled
from bmcompiler.target import find_target

if TYPE_CHECKING:
    from bmcompiler.files.store import StrPath
    from bmcompiler.numeric.arrays import Array

__all__ = ["CheckError", "Checked", "assert_same", "check_network", "check_op", "random_arrays", "random_shapes"]

Make = Callable[..., Any]
"""make(builder, *inputs) -> the op's value, or a tuple of them; the builder has a method per TensorOp."""
_SAMPLES = 16


class CheckError(AssertionError):
    """A kernel that is not what its op says; the message has the place of the first difference."""


@dataclass(frozen=True)
class Checked:
    """What a check has compared.

    Attributes:
        result: the compilation: `rows` say where each layer runs, `module` is the IR that was compared.
        outputs: the last results of the simulator, in the device's types.
        error: largest difference between the chip's real values and the network in floating point, over all seeds, in
            units of the largest value of the same output.
    """

    result: Result
    outputs: dict[str, Array]
    error: float


def random_shapes(count: int, *axes: tuple[int, int], seed: int = 0) -> Iterator[tuple[int, ...]]:
    """`count` shapes whose axes lie in the given ranges (both ends included): first the smallest, then the largest."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        if number < 2:
            yield tuple(axis[number] for axis in axes)
        else:
            yield tuple(int(rng.integers(low, high + 1)) for low, high in axes)


def random_arrays(module: Module, seed: int = 0, samples: int = 0) -> dict[str, Array]:
    """An array for every input of a net: normal values for floats, all values of their type for integers.

    Args:
        samples: > 0 gives as many samples on axis 0 of each array (calibration data) instead of one input.
    """
    rng = np.random.default_rng(seed)
    function = module.main
    arrays: dict[str, Array] = {}
    for name, value in zip(function.input_names, function.arguments):
        shape = (samples * value.shape[0], *value.shape[1:]) if samples and value.shape else value.shape
        kind = value.type.numpy
        if kind.kind == "f":
            arrays[name] = rng.normal(0, 1, shape).astype(kind)
        elif kind.kind == "b":
            arrays[name] = rng.integers(0, 2, shape).astype(kind)
        else:
            info = np.iinfo(kind)
            arrays[name] = rng.integers(max(info.min, -(2**15)), min(info.max, 2**15) + 1, shape).astype(kind)
    return arrays


def assert_same(got: Mapping[str, Array], want: Mapping[str, Array], what: str = "") -> None:
    """Compare named arrays bit for bit (NaN equals NaN).

    Raises:
        CheckError: names, shapes or types differ; or values do, then the message names the tensor, the index of the
            first difference (n, c, h, w for 4-D tensors), both values there, and how many differ.
    """
    prefix = f"{what}: " if what else ""
    if list(got) != list(want):
        raise CheckError(f"{prefix}outputs are {', '.join(got)}, expected {', '.join(want)}")
    for name, expected in want.items():
        given, expected = np.asarray(got[name]), np.asarray(expected)
        if given.shape != expected.shape and given.size == expected.size == 1:
            given = given.reshape(expected.shape)  # model files hold no scalars
        if (given.shape, given.dtype) != (expected.shape, expected.dtype):
            raise CheckError(
                f"{prefix}tensor '{name}' is {given.dtype}{list(given.shape)}, "
                f"expected {expected.dtype}{list(expected.shape)}"
            )
        places = np.argwhere(different(given, expected))
        if len(places):
            at = tuple(int(i) for i in places[0])
            raise CheckError(
                f"{prefix}tensor '{name}' differs first at {_index(at)}: expected {expected[at]}, got {given[at]}; "
                f"{len(places)} of {expected.size} values differ"
            )


def _index(at: tuple[int, ...]) -> str:
    axes = "nchw" if len(at) == 4 else ()
    return ", ".join(f"{axis} = {i}" for axis, i in zip(axes, at)) if axes else f"index {list(at)}"


def check_op(
    make: Make,
    shapes: Sequence[Sequence[int]],
    *,
    target: str,
    quantize: str | None = None,
    data: Mapping[str, Array] | None = None,
    seeds: int = 3,
    levels: Sequence[int] = (0, 1, 2),
    on_device: bool = True,
    dtype: str = "f32",
    close: float | None = None,
) -> Checked:
    """Check a net of one op, or of the few that `make` builds from float inputs called x0, x1, ...

    Args:
        make: called with a `bmcompiler.ops.builder.Builder` and one value per shape.
        quantize: "f32", "f16" or "int8"; None for the target's default.
        data: calibration samples by input name; None takes the random inputs that are run, and more.
        seeds: how many random inputs are run per level. levels: values of --opt.
        on_device: the op must run on the chip, not on the host.
        close: largest allowed `Checked.error`, against the op's meaning in float; None compares bits only.

    Raises:
        CheckError: the op falls back to the CPU, results differ, or commands race.
        BMError: it does not compile.
    """
    builder = Builder.new("check")
    inputs = [builder.input(f"x{i}", TensorType(tuple(shape), dtype)) for i, shape in enumerate(shapes)]
    with builder.at("op"):
        made = make(builder, *inputs)
    values = [made] if isinstance(made, Value) else list(made)
    names = [f"y{i}" for i in range(len(values))]
    module = builder.outputs(values, names)
    for value, name in zip(values, names):
        if value.op is not None:
            value.op.attributes.setdefault(TENSOR_NAME, name)
    found = [_check(module, level, target, quantize, data, seeds, close) for level in levels]
    if on_device:
        _need_device(found[-1].result, target)
    return Checked(found[-1].result, found[-1].outputs, max(each.error for each in found))


def check_network(
    model: StrPath,
    weights: StrPath | None = None,
    *,
    target: str,
    quantize: str | None = None,
    data: Mapping[str, Array] | None = None,
    seeds: int = 3,
    levels: Sequence[int] = (0, 1, 2),
    on_device: Sequence[str] = (),
    close: float | None = None,
) -> Checked:
    """Check a network file (.prototxt with its .caffemodel, .onnx, .mlir) as `check_op` checks an op.

    Args:
        on_device: names of layers that must run on the chip.
    """
    module = load_network(model, weights)
    found = [_check(module, level, target, quantize, data, seeds, close) for level in levels]
    _need_device(found[-1].result, target, on_device)
    return Checked(found[-1].result, found[-1].outputs, max(each.error for each in found))


def _need_device(result: Result, target: str, layers: Sequence[str] | None = None) -> None:
    for row in result.rows:
        # conversions stand at the border of what the host runs: the reason is with the op itself
        if (
            row.where == "cpu"
            and row.kind not in ("quantize", "dequantize")
            and (row.layer in layers if layers is not None else row.layer == "op")
        ):
            raise CheckError(f"layer '{row.layer}' ({row.kind}) runs on the CPU, not on {target}: {row.reason}")


def _check(
    original: Module,
    level: int,
    target: str,
    quantize: str | None,
    data: Mapping[str, Array] | None,
    seeds: int,
    close: float | None,
) -> Checked:
    chip = find_target(target)
    precision = quantize or chip.precisions[0]
    calibrates = "calibrate" in chip.pipeline(precision, level)
    real = [random_arrays(original, seed) for seed in range(seeds)]
    method: Method | None = None
    if calibrates and data is None:
        # what the chip will be given, so that what is measured is rounding, not what lies beyond the thresholds
        more = random_arrays(original, seeds, _SAMPLES)
        data = {name: np.concatenate([array, *(each[name] for each in real)]) for name, array in more.items()}
        method = "max"
    samples = data if calibrates else None
    result = compile_module(
        original, target=target, quantize=quantize, data=samples, method=method, opt=as_level(level), check="never"
    )
    session = lookup("bmcompiler.runtimes", "session", "runtime")(result.model)
    what = f"{target}, {spelled('opt', level)}"
    outputs: dict[str, Any] = {}
    for seed in range(seeds):
        inputs = random_arrays(result.module, seed)
        outputs = session.run(inputs, raw=True)
        assert_same(outputs, run_module(result.module, inputs, target=chip), f"{what}, seed {seed}")
    error = _float_error(session, original, real)
    if close is not None and error > close:
        raise CheckError(
            f"{what}: results are {error:.3g} of their range away from those in float, allowed {close:.3g}"
        )
    _check_races(result, target, what)
    return Checked(result, outputs, error)


def _float_error(session: Any, original: Module, samples: Sequence[Mapping[str, Array]]) -> float:
    """Largest difference of any output, in units of its largest value in all samples."""
    pairs = [(session.run(inputs), run_module(original, inputs)) for inputs in samples]
    errors = [0.0]
    for name in original.main.output_names:
        exact = np.stack([want[name] for _, want in pairs])
        if exact.dtype.kind == "f" and exact.size:
            got = np.stack([got[name].reshape(exact.shape[1:]) for got, _ in pairs])
            largest = max(float(np.abs(exact).max()), float(np.finfo(np.float32).tiny))
            errors.append(float(np.abs(got - exact).max()) / largest)
    return max(errors)


def _check_races(result: Result, target: str, what: str) -> None:
    analyze = find_analyzer(target)
    if analyze is None:
        return
    try:
        races = analyze(result.model, 0).races()
    except BMError as error:
        raise CheckError(f"{what}: the program cannot be analysed: {error}") from error
    if races:
        raise CheckError(f"{what}: {len(races)} races, the first: {races[0]}")
