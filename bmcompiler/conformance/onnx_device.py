"""Modules on a simulated chip, for the onnx backend and its suite: all layers on the device, or some on the host."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bmcompiler.analysis.estimate import estimate
from bmcompiler.api import compile_module
from bmcompiler.errors import CalibrationError, SimulatorError, UnsupportedError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module
from bmcompiler.plugins.registry import lookup
from bmcompiler.result import Result
from bmcompiler.target import Target, find_target

Arrays = dict[str, np.ndarray]
_BORDERS = ("quantize", "dequantize")
"""What stands between device and host for the sake of other layers, whose reasons tell more."""


def run_on_target(
    module: Module, feeds: Mapping[str, np.ndarray], target_name: str, host: bool = False, statistics: str = "measured"
) -> Arrays:
    """Compile a float module in the target's widest floats, run it on the device, and give its outputs back.

    A target without floats computes in int8, calibrated on `feeds`; statistics is that option of `legalize`. With
    `host` the host may run layers that the target does not, as in any model of the target. Values cross in the element
    types of the model file: 64-bit integers saturate to i32, bool is u8.

    Raises:
        UnsupportedError: a layer would run on the host CPU, no input is left, or a value cannot cross the
            border of a model, or int8 has no scale for it; the text says why.
        SimulatorError: the device computes other bits than the target's own arithmetic says.
    """
    target = find_target(target_name)
    function = module.main
    declared = {name: value.type.numpy for name, value in zip(function.output_names, function.returned)}
    shapes = {name: value.shape for name, value in zip(function.output_names, function.returned)}
    if host:
        _refuse_outputs(module)
    precision = float_precision(target)
    if precision is None:
        result = _of_bytes(module, feeds, target_name, statistics)
    else:
        result = _of_floats(module, target_name, precision)
    left = [] if host else [row for row in result.rows if row.where == "cpu"]
    for row in sorted(left, key=lambda row: row.kind in _BORDERS):
        raise UnsupportedError(f"runs on the host CPU: {row.reason}", kind=row.kind, layer=row.layer)
    compiled = result.module.main
    if not host and not compiled.arguments:
        raise UnsupportedError("nothing is left for the device to compute")
    timing = None if host or any(row.commands for row in result.rows) else estimate(result)
    if timing is not None and timing.cpu_records:
        raise UnsupportedError("the host copies what nothing computes")
    if precision is None:
        found = result.session().run({name: feeds[name] for name in compiled.input_names})
        return {name: found[name].reshape(shapes[name]).astype(declared[name]) for name in declared}
    given = {
        name: _narrowed(feeds[name], value.type.numpy) for name, value in zip(compiled.input_names, compiled.arguments)
    }
    program = lookup("bmcompiler.devices", target_name, "device")().load(result.model)[0]
    results = dict(zip(function.output_names, program.run(list(given.values()))))
    for name, expected in run_module(result.module, given, target=target).items():
        if results[name].tobytes() != expected.tobytes():
            raise SimulatorError(f"output '{name}' differs from the arithmetic of {target_name}")
        results[name] = results[name].reshape(expected.shape).astype(declared[name])
    return results


def _of_floats(module: Module, target: str, precision: str) -> Result:
    """The caller compares the device with the target's arithmetic."""
    return compile_module(module, target=target, quantize=precision, check="never")


def _of_bytes(module: Module, feeds: Mapping[str, np.ndarray], target: str, statistics: str) -> Result:
    """In int8, calibrated on the case's inputs; raises UnsupportedError where these have no scale."""
    pipeline = find_target(target).pipeline("int8", 2).replace("legalize", f"legalize{{statistics={statistics}}}")
    samples = {name: array if array.ndim else array[np.newaxis] for name, array in feeds.items()}
    try:
        return compile_module(module, target=target, quantize="int8", data=samples, check="always", pipeline=pipeline)
    except CalibrationError as error:
        raise UnsupportedError(error.reason, layer=error.layer, kind="int8") from error


def _refuse_outputs(module: Module) -> None:
    """Raises UnsupportedError for outputs that a model file cannot describe."""
    for name, value in zip(module.main.output_names, module.main.returned):
        if not value.type.size:
            raise UnsupportedError(f"output '{name}' is empty, which a model file cannot hold")


def float_precision(target: Target) -> str | None:
    """The widest float that a target computes in, "f32" or "f16"; None for a target that has none."""
    return next((name for name in ("f32", "f16") if name in target.precisions), None)


def _narrowed(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if array.dtype == dtype:
        return array
    if array.dtype.kind in "iu" and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.clip(array, limits.min, limits.max).astype(dtype)
    return array.astype(dtype)
