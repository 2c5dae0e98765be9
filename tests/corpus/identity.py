"""Questions about sameness: bytes whatever happens beside or before, all programs of a file, levels."""

from __future__ import annotations

import numpy as np
import onnx
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument

from bmcompiler.analysis.timing_profile import named_profiles, profile_for
from bmcompiler.runtime import Session
from bmcompiler.runtime.session import _to_device

from . import rounded
from .elsewhere import compiled_elsewhere, digest
from .graph import run_onnx
from .trial import CheckError, Trial, bytes_of, same

_OTHER_RATES = {"bm1880": (), "bm1684": ("load_rate=3e9", "start=900"), "bm1684x": ("load_rate=4e9",), "dv700": ()}


def same_bytes(trial: Trial) -> None:
    """Compiled twice, the program has the same bytes."""
    _equal(bytes_of(trial.compiled()), bytes_of(trial.compiled_anew()), "bytes")


def same_bytes_in_another_process(trial: Trial) -> None:
    """Another process, with another order of its sets, gives the same bytes."""
    (other,) = compiled_elsewhere(trial, [(trial.model, trial.data)], check="never")
    if other.digest != digest(bytes_of(trial.compiled())):
        raise CheckError("bytes in another process", "not the same")


def same_bytes_after_others(trial: Trial) -> None:
    """So does this process after compilations with other rates, in other precisions, and for another chip."""
    first = bytes_of(trial.compiled())
    profiles = [profile_for(trial.chip, [name]) for name in named_profiles(trial.chip)]
    profiles += [profile_for(trial.chip, _OTHER_RATES[trial.chip])] if _OTHER_RATES[trial.chip] else []
    for profile in profiles:
        trial.compiled_anew(timing_profile=profile, check="never")
    for precision in trial.target.precisions:
        if precision != trial.precision:
            trial.compiled_anew(quantize=precision, opt=2 - trial.level, check="never")
    trial.compiled_anew(target="bm1684" if trial.chip == "bm1684x" else "bm1684x", quantize="f32", check="never")
    _equal(first, bytes_of(trial.compiled_anew()), "bytes after others")


def _equal(first: bytes, second: bytes, kind: str) -> None:
    if first != second:
        raise CheckError(kind, f"{len(first)} and {len(second)} bytes, not the same")


def every_program_of_a_file(trial: Trial) -> None:
    """A file with a program for the batch and one for twice as much: each gives what the network means.

    All are proven against their final IR. In float the larger is also compared with `evaluate` of the network compiled
    for its batch alone, and with ONNX Runtime.
    """
    trial.need_simulation()
    alone, shapes = trial.doubled, trial.shapes
    twice = [[2 * shape[0], *shape[1:]] for shape in shapes]
    both = trial.compiled_anew(shapes=[shapes, twice], check="always")
    if both.checked is None or both.checked.programs != 2:
        raise CheckError("unproven", f"two programs, of which were proven: {both.checked}")
    if trial.precision == "int8":
        return
    session = Session(both.model)
    raw = {each.name: _to_device(each.name, each, trial.data[each.name], False) for each in session.inputs}
    found = session.run(raw, raw=True)
    for name, wanted in trial.evaluated(alone.module, raw).items():
        same(found[name], wanted, f"{name}, twice the batch")
    if trial.precision == "f32":
        _near(trial, found)


def _near(trial: Trial, found: dict[str, np.ndarray]) -> None:
    """Raises CheckError where outputs for twice the batch are far from what ONNX Runtime gives for it."""
    wider = onnx.ModelProto.FromString(trial.model.SerializeToString())
    for each in wider.graph.input:
        each.type.tensor_type.shape.dim[0].dim_value *= 2
    for out in wider.graph.output:
        out.type.tensor_type.ClearField("shape")
    del wider.graph.value_info[:]
    batch = {key: trial.data[key] for key in trial.batch}
    try:
        real = dict(zip((out.name for out in wider.graph.output), run_onnx(wider, batch)))
    except (
        Fail,
        InvalidArgument,
    ):  # the batch stands in its constants, which the importer makes larger: there is nothing to compare with
        return
    far = rounded.too_far(wider, batch, real, found, "f32", least=1e-3)
    if far is not None:
        raise CheckError("far-from-float", f"twice the batch, {far}")
