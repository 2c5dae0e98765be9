"""What the frontends make of each source op: small modules, as many forms as the samples have."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from bmcompiler.errors import BMError
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.passes.rewriting import make

ROOT = Path(__file__).resolve().parent.parent.parent
CAFFE_TESTS = (
    "test_caffe_layers.py",
    "test_caffe_more_layers.py",
    "test_caffe_detection.py",
    "test_caffe_recurrent.py",
    "test_caffe_regions.py",
)


@dataclass
class Source:
    """One ONNX op or Caffe layer type: the modules it became, and since which opset it is taken."""

    modules: list[Module] = field(default_factory=list)
    since: str = ""

    def made(self) -> list[str]:
        """Names of the TensorOps in all modules."""
        names = {op.short_name for module in self.modules for op in module.main.ops[:-1]}
        return sorted(names - {"weight"})

    def chosen(self) -> list[Module]:
        """The float32 modules, or all where there are none: integer forms on host tensors say little of a chip."""
        floats = [m for m in self.modules if any(v.dtype == "f32" for v in (*m.main.arguments, *m.main.returned))]
        return floats or self.modules


# -- ONNX --------------------------------------------------------------------------------------------------------------
def onnx_sources() -> dict[str, Source]:
    """Op type -> what its cases in the onnx package became; op types of which no case imports are left out."""
    from bmcompiler.conformance.onnx_suite import cases

    sources: dict[str, Source] = {}
    for case in cases("node"):
        if case.op.startswith("("):
            continue
        try:
            model, sets = case.load()
        except (KeyError, ValueError):
            continue
        source = sources.setdefault(case.op, Source())
        source.modules += _imports(model, sets[0][0])
    source = sources.setdefault("GlobalLpPool", Source())  # the package has no case of it
    source.modules += _imports(_pooled("GlobalLpPool"), [np.ones((1, 3, 5, 5), np.float32)])
    for name, source in sources.items():
        source.since = _since(name)
    return {name: source for name, source in sorted(sources.items()) if source.modules}


def _pooled(kind: str) -> onnx.ModelProto:
    """One node that makes a pixel of each channel."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, (1, 3, s, s)) for n, s in (("x", 5), ("y", 1)))
    graph = helper.make_graph([helper.make_node(kind, ["x"], ["y"])], "net", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def _imports(model: Any, inputs: Any) -> Iterator[Module]:
    """The model with all inputs computed, and with constants for all but the first."""
    from bmcompiler.conformance.onnx_backend import Prepared

    prepared = Prepared(model)
    arrays = [np.asarray(value) for value in inputs if not isinstance(value, (list, type(None)))]
    if len(arrays) != len(inputs) or len(arrays) != len(prepared.names):
        return
    for constant in dict.fromkeys([(False,) * len(arrays), tuple(i > 0 for i in range(len(arrays)))]):
        with contextlib.suppress(BMError):
            yield prepared._import(arrays, constant)


def _since(name: str) -> str:
    """The first opset whose form of the op has a converter; ops without one are expanded by their definition."""
    import onnx

    from bmcompiler.frontends.onnx import registry

    first = min((s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.name == name), default=1)
    registry.load_converters()
    own = [since for _, kind, since in registry._TABLE.registered() if kind == name]
    return f"{max(first, min(own, default=first))}+"


# -- Caffe -------------------------------------------------------------------------------------------------------------
class _Recorder:
    """Keeps, for every layer that a test converts, its ops as a module."""

    def __init__(self) -> None:
        self.sources: dict[str, Source] = {}
        self.seen: set[str] = set()

    def wrap(self, find: Callable[[str], Any]) -> Callable[[str], Any]:
        def found(kind: str) -> Any:
            convert = find(kind)
            if convert is None or not convert.__module__.startswith("bmcompiler."):
                return convert

            def recorded(layer: Any) -> Any:
                before = len(layer.b.function.ops)
                results = convert(layer)
                values = [results] if isinstance(results, Value) else list(results)
                self.keep(kind, layer.b.module, layer.b.function.ops[before:], values)
                return results

            recorded.__module__ = convert.__module__
            return recorded

        return found

    def keep(self, kind: str, net: Module, ops: list[Operation], results: list[Value]) -> None:
        module = _extract(net, ops, results)
        text = f"{kind} {module}"
        if text not in self.seen:
            self.seen.add(text)
            self.sources.setdefault(kind, Source()).modules.append(module)


def _extract(net: Module, ops: list[Operation], results: list[Value]) -> Module:
    """Ops of one layer as a module; what they read from before becomes inputs."""
    function = Function("layer")
    module = Module([function])
    values: dict[Value, Value] = {}

    def value_of(value: Value) -> Value:
        if value not in values:
            source = value.op
            if source is not None and source.short_name == "weight":
                key = source.attributes["key"]
                module.weights[key] = net.weights[key]
                values[value] = function.body.append(make("weight", (), {"key": key}, [value.type])).result
            else:
                function.input_names.append(f"in{len(function.input_names)}")
                values[value] = function.body.add_argument(value.type)
        return values[value]

    for op in ops:
        if op.short_name == "weight":
            continue
        types = [result.type for result in op.results]
        copy = make(op.short_name, [value_of(v) for v in op.operands], op.attributes, types, op.location)
        values.update(zip(op.results, function.body.append(copy).results))
    function.set_outputs([value_of(v) for v in results], [f"out{i}" for i in range(len(results))])
    return module


def caffe_sources() -> dict[str, Source]:
    """Layer type -> what it became in the layer tests. Raises SystemExit when a test fails."""
    import pytest

    from bmcompiler.frontends.caffe import importer

    recorder = _Recorder()
    find = importer.find_converter
    importer.find_converter = recorder.wrap(find)
    folder = ROOT / "tests" / "frontends" / "caffe"
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output), warnings.catch_warnings():
            arguments = ["-q", "-x", "-p", "no:cacheprovider", *(str(folder / name) for name in CAFFE_TESTS)]
            failed = pytest.main(arguments)
    finally:
        importer.find_converter = find
        logging.captureWarnings(False)
    if failed:
        raise SystemExit(f"gen_pages: the Caffe layer tests fail\n{output.getvalue()[-2000:]}")
    return dict(sorted(recorder.sources.items()))
