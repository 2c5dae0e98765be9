"""An `onnx.backend.base.Backend` that runs models on the op-level interpreter.

    from bmcompiler.conformance import onnx_backend

    outputs = onnx_backend.prepare(onnx.load("net.onnx")).run([x])

What the ONNX frontend cannot import raises `NotSupportedError`: an `UnsupportedError`, and for the suite of the onnx
package a skipped test. `python -m bmcompiler.conformance.onnx_suite` runs that suite and counts per op.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference, version_converter
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from bmcompiler.conformance.onnx_device import run_on_target
from bmcompiler.errors import UnsupportedError, UsageError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Operation, verify_module
from bmcompiler.ir.keys import is_return
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.places.selection import Padded, padded_op
from bmcompiler.plugins.registry import entry_points, lookup

_OLDEST_OPSET = 7


class NotSupportedError(UnsupportedError, BackendIsNotSupposedToImplementIt):
    """The model needs something that no converter or TensorOp provides; `kind` names the op."""


class Prepared(BackendRep):
    """A model whose import waits for its inputs, because their shapes, and sometimes their values, decide the ops.

    Results whose length depends on values, padded by the frontend, are cut to the length that ONNX gives them.
    Inputs stay inputs as far as the frontend allows; where an op needs constants (axes, shapes, weights), the given
    arrays are folded in: first integers, then all but the first input, then everything.
    """

    def __init__(
        self, model: onnx.ModelProto, target: str | None = None, host: bool = False, statistics: str = "measured"
    ) -> None:
        """`target`: the chip whose simulator computes; None for the op-level interpreter. The rest: see `prepare`."""
        self.model, self.target, self.host, self.statistics = _upgraded(model), target, host, statistics
        known = {tensor.name for tensor in self.model.graph.initializer}
        self.names = [info.name for info in self.model.graph.input if info.name not in known]
        self.inputs_kept = 0
        """How many inputs of the last run were inputs of the module, not folded."""
        self._last: tuple[object, Module] | None = None
        self._by_target: UnsupportedError | None = None

    def run(self, inputs: Any, **options: Any) -> tuple[np.ndarray, ...]:
        """All outputs. `inputs`: one array per graph input without an initializer.

        Raises:
            NotSupportedError: see the class.
            BMError: the model or the inputs are wrong.
        """
        arrays = [_as_array(name, value) for name, value in zip(self.names, inputs, strict=False)]
        if len(arrays) < len(self.names):
            raise UsageError(f"{len(self.names)} inputs are needed ({', '.join(self.names)}), got {len(arrays)}")
        attempts = dict.fromkeys(
            tuple(fixed or array.size == 0 for fixed, array in zip(constant, arrays))
            for constant in (
                [False] * len(arrays),
                [i > 0 and array.dtype.kind != "f" for i, array in enumerate(arrays)],
                [array.dtype.kind != "f" for array in arrays],
                [i > 0 for i in range(len(arrays))],
                [True] * len(arrays),
            )
        )
        self._by_target = None
        for constant in attempts:
            try:
                return self._run(arrays, constant)
            except UnsupportedError as error:
                last = self._by_target or error
        first = last.refusals[0] if last.refusals else last
        raise NotSupportedError(first.reason, layer=first.layer, kind=first.kind, remedy=first.remedy) from last

    def _run(self, arrays: Sequence[np.ndarray], constant: tuple[bool, ...]) -> tuple[np.ndarray, ...]:
        feeds = {name: array for name, array, fixed in zip(self.names, arrays, constant) if not fixed}
        key = (constant, [(array.shape, array.dtype) for array in arrays])
        if any(constant) or self._last is None or self._last[0] != key:
            self._last = (key, self._import(arrays, constant))
        self.inputs_kept = len(feeds)
        module = self._last[1]
        padded = {name: padded_op(value) for name, value in zip(module.main.output_names, module.main.returned)}
        if self.target is not None:
            self._last = None  # the target's passes change the module
            try:
                results = run_on_target(module, feeds, self.target, self.host, self.statistics)
            except UnsupportedError as error:  # what it says with fewer constants tells more
                self._by_target = self._by_target or error
                raise
        else:
            results = run_module(module, feeds)
        for name, op in padded.items():
            if op is not None:
                results[name] = op.trimmed(results[name])
        return tuple(results[output.name] for output in self.model.graph.output)

    def _import(self, arrays: Sequence[np.ndarray], constant: tuple[bool, ...]) -> Module:
        model = self.model
        if any(constant):
            model = onnx.ModelProto()
            model.CopyFrom(self.model)
        shapes = {}
        for name, array, fixed in zip(self.names, arrays, constant):
            if fixed:
                model.graph.initializer.append(numpy_helper.from_array(array, name))
            else:
                shapes[name] = array.shape
        module: Module = lookup("bmcompiler.frontends", "onnx", "frontend").load(model, shapes=shapes)
        verify_module(module)
        _refuse_padding_inside(module)
        return module


class InterpreterBackend(Backend):
    """The frontend and the op-level interpreter as an ONNX backend for device "CPU".

    A target's name as the device runs the model on its simulator instead, if all layers run there: in its widest
    floats, or in int8, calibrated on the inputs of the run.
    """

    @classmethod
    def prepare(
        cls,
        model: onnx.ModelProto,
        device: str = "CPU",
        host: bool = False,
        statistics: str = "measured",
        **options: Any,
    ) -> Prepared:
        """A model to run; with `host` the host may run layers of it that a chip does not.

        statistics: "bytes" has a chip without floats compute norms, softmax, recurrent layers and their like, too,
        "host" does not, and "measured" where the inputs show that eight bits do.

        Raises NotSupportedError for other devices.
        """
        if not cls.supports_device(device):
            raise NotSupportedError(f"device '{device}' does not exist", remedy="use the device CPU")
        name = _device_name(device)
        return Prepared(model, None if name == "cpu" else name, host, statistics)

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **options: Any) -> tuple[Any, ...]:
        """`prepare` and `run` at once."""
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **options: Any,
    ) -> tuple[np.ndarray, ...]:
        """One node of the newest opset (or option `opset_version`) on arrays in the order of its inputs."""
        names = list(dict.fromkeys(name for name in node.input if name))
        arrays = [_as_array(name, value) for name, value in zip(names, inputs, strict=True)]
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, arrays)
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        opset = helper.make_opsetid(node.domain, options.get("opset_version", onnx.defs.onnx_opset_version()))
        graph = helper.make_graph([node], "node", infos, outputs)
        return cls.run_model(helper.make_model(graph, opset_imports=[opset]), arrays, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether `device` ("CPU", "CHIP:0"...) names the interpreter or a chip."""
        name = _device_name(device)
        return name == "cpu" or name in entry_points("bmcompiler.targets")


def _device_name(device: str) -> str:
    """The part before the number: "CPU:0" -> "cpu"."""
    return device.split(":", maxsplit=1)[0].lower()


prepare = InterpreterBackend.prepare
run_model = InterpreterBackend.run_model
run_node = InterpreterBackend.run_node
supports_device = InterpreterBackend.supports_device


def _as_array(name: str, value: Any) -> np.ndarray:
    if value is None or isinstance(value, (list, tuple, dict)):
        raise NotSupportedError(
            f"input '{name}' is a sequence, a map or an optional; only tensors are supported", kind="type"
        )
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise NotSupportedError(
            f"input '{name}' has elements of type {array.dtype}, which is not supported", kind="type"
        )
    return array


def _refuse_padding_inside(module: Module) -> None:
    """Raise UnsupportedError where padding would be computed with: only outputs can be trimmed afterwards."""
    for op in module.walk():
        if isinstance(op, Padded) and not _only_leaves(op):
            raise UnsupportedError(
                "how long its result is depends on values, and other layers read it", layer=op.label, kind=op.opname
            )


def _only_leaves(op: Operation) -> bool:
    """Whether a result reaches nothing but outputs of the net, in whichever types."""
    return all(is_return(user) or (isinstance(user, Cast) and _only_leaves(user)) for user in op.result.users)


def _upgraded(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in an opset that the frontend reads: models older than opset 7 go through onnx's version converter.

    Opset 6 laid the slopes of PRelu along the channels, which the converter forgets: they get the axes they need.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    version = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), _OLDEST_OPSET)
    if version >= _OLDEST_OPSET:
        return copy
    copy = version_converter.convert_version(copy, _OLDEST_OPSET)
    typed = shape_inference.infer_shapes(model).graph
    ranks = {info.name: len(info.type.tensor_type.shape.dim) for info in (*typed.input, *typed.value_info)}
    slopes = {n.input[1]: ranks.get(n.input[0], 2) for n in copy.graph.node if n.op_type == "PRelu"}
    for tensor in copy.graph.initializer:
        if tensor.name in slopes and len(tensor.dims) == 1:
            tensor.dims.extend([1] * (slopes[tensor.name] - 2))
    for info in copy.graph.input:
        if info.name in slopes and len(info.type.tensor_type.shape.dim) == 1:
            for _ in range(slopes[info.name] - 2):
                info.type.tensor_type.shape.dim.add().dim_value = 1
    return copy


__all__ = [
    "InterpreterBackend",
    "NotSupportedError",
    "Prepared",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]
