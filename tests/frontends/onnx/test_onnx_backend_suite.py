"""The conformance cases of the onnx package, as far as their ops are supported.

A case that raises UnsupportedError counts as skipped; every other case must give the expected values.
"""

from __future__ import annotations

import collections
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, version_converter
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test.loader import load_model_tests
from onnx_models import imported

from bmcompiler.errors import UnsupportedError
from bmcompiler.frontends.onnx.constants import find_folder
from bmcompiler.frontends.onnx.registry import known_types


class _Prepared(BackendRep):
    """A model whose import waits for the inputs, because the cases feed weights and shapes at run time."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model

    def run(self, inputs: Sequence[Any], **options: Any) -> tuple[np.ndarray, ...]:
        """The first output. As many inputs as the importer allows stay inputs: all reals, the first one, or none."""
        arrays = [np.asarray(value) for value in inputs]
        reasons = []
        for constant in (
            [i > 0 and array.dtype.kind != "f" for i, array in enumerate(arrays)],
            [i > 0 for i in range(len(arrays))],
            [True] * len(arrays),
        ):
            try:
                return self._run(arrays, constant)
            except UnsupportedError as error:
                reasons.append(error)
        raise reasons[0]

    def _run(self, arrays: Sequence[np.ndarray], constant: Sequence[bool]) -> tuple[np.ndarray, ...]:
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        feeds = {}
        known = {tensor.name for tensor in model.graph.initializer}
        names = [info.name for info in model.graph.input if info.name not in known]
        for name, array, fixed in zip(names, arrays, constant):
            if fixed:
                model.graph.initializer.append(numpy_helper.from_array(array, name))
            else:
                feeds[name] = array
        shapes = {name: array.shape for name, array in feeds.items()}
        _, results = imported(model, feeds, outputs=[self.model.graph.output[0].name], shapes=shapes)
        return tuple(results.values())


class ImportBackend(Backend):
    """Import and op-level interpreter as an ONNX backend."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **options: Any) -> BackendRep:
        return _Prepared(model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"


def plain(values: Sequence[Any]) -> bool:
    """Whether all are arrays of element types that TensorOps have, and not empty."""
    return all(
        not isinstance(v, (list, dict, type(None))) and np.asarray(v).dtype.kind in "fiub" for v in values
    ) and all(np.asarray(v).size for v in values)


def supported(model: onnx.ModelProto) -> bool:
    known = set(known_types())
    return all(not n.domain and (n.op_type in known or find_folder("", n.op_type, True)) for n in model.graph.node)


def run(backend: type[Backend], case: Any, model: onnx.ModelProto, data: tuple[Any, Any]) -> None:
    inputs, outputs = data
    (got,) = backend.prepare(model).run(inputs)
    want = np.asarray(outputs[0])
    assert got.shape == want.shape and got.dtype == want.dtype, f"{got.dtype}{got.shape}, not {want.dtype}{want.shape}"
    np.testing.assert_allclose(got, want, rtol=case.rtol, atol=max(case.atol, 1e-6))


def judge(cases: Sequence[tuple[Any, onnx.ModelProto, tuple[Any, Any]]]) -> tuple[int, dict[str, int], list[str]]:
    """Cases passed, cases skipped by reason, and failures."""
    passed, skipped, failed = 0, collections.Counter[str](), []
    for case, model, data in cases:
        try:
            run(ImportBackend, case, model, data)
            passed += 1
        except UnsupportedError as error:
            skipped[f"{error.kind or 'model'}: {error.reason}"] += 1
        except Exception as error:
            failed.append(f"{case.name}: {type(error).__name__}: {str(error)[:200]}")
    return passed, skipped, failed


@pytest.mark.slow
def test_node_cases_of_supported_ops() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generated cases divide by zero on purpose
        generated = load_model_tests(kind="node")
    cases = [
        (case, case.model, case.data_sets[0])
        for case in generated
        if len(case.model.graph.node) == 1
        and supported(case.model)
        and plain((*case.data_sets[0][0], *case.data_sets[0][1]))
    ]
    passed, skipped, failed = judge(cases)
    print(f"{passed} passed, skipped: {dict(skipped)}")
    assert not failed, "\n".join(failed)
    assert passed >= 500


OLD_MEANING = ("test_PReLU_1d_multiparam", "test_PReLU_2d_multiparam", "test_PReLU_3d_multiparam")
"""Opset 6 counted the slopes along channels without broadcasting; the version converter leaves them as they are."""


def stored(kind: str) -> list[tuple[Any, onnx.ModelProto, tuple[Any, Any]]]:
    """Cases that lie in the onnx package as files, brought to opset 7 where they are older."""
    cases = []
    for case in load_model_tests(kind=kind):
        folder = Path(case.model_dir)
        model = onnx.load(folder / "model.onnx")
        if not supported(model) or case.name in OLD_MEANING:
            continue
        if model.opset_import[0].version < 7:
            model = version_converter.convert_version(model, 7)
        arrays = [
            [
                numpy_helper.to_array(onnx.load_tensor(file))
                for file in sorted((folder / "test_data_set_0").glob(pattern))
            ]
            for pattern in ("input_*.pb", "output_*.pb")
        ]
        cases.append((case, model, (arrays[0], arrays[1])))
    return cases


@pytest.mark.parametrize(("kind", "least"), [("pytorch-converted", 60), ("pytorch-operator", 30)])
def test_models_exported_by_pytorch(kind: str, least: int) -> None:
    passed, skipped, failed = judge(stored(kind))
    print(f"{passed} passed, skipped: {dict(skipped)}")
    assert not failed, "\n".join(failed)
    assert passed >= least
