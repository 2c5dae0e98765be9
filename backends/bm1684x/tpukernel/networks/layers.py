"""Kernels as layers of networks: what one issues becomes part of the network's program.

    @register_layer("RowNorm", reference=row_norm_in_numpy, tolerance=1e-5)
    @kernel
    def row_norm(call: LayerCall) -> None:
        (x,), (y,) = call.inputs, call.outputs
        ...

The layer is the op `customized` of that sub type, which converters of ONNX nodes and Caffe layers, `customed_ops` of
BMLang and patterns make. It has a group of its own: local memory is the kernel's from its first command to its last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np

from bmcompiler.analysis.profile import Analysis, analysis_of
from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.machine import cycles_of
from bmcompiler.backends.bm1684x.timing_profile import TimingProfile
from bmcompiler.backends.bm1684x.tpukernel.allocator import LocalMemory
from bmcompiler.backends.bm1684x.tpukernel.kernel import Program
from bmcompiler.backends.bm1684x.tpukernel.networks.model import Placed, model_of
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t
from bmcompiler.backends.lanes.kernels.base import DeviceKernel, is_constant
from bmcompiler.bmodel.bm168x import Bm168xModel
from bmcompiler.chip import align_up
from bmcompiler.codegen.schedule import Moved
from bmcompiler.errors import EncodingError, UsageError, WrongProgramError
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.custom import Customized
from bmcompiler.plugins.custom_layers import CpuFunction, register_cpu_function, register_kernel
from bmcompiler.plugins.registry import PluginError, lookup, plugin_code
from bmcompiler.target import rule

_TYPES = {
    "f32": data_type_t.DT_FP32,
    "f16": data_type_t.DT_FP16,
    "bf16": data_type_t.DT_BFP16,
    "i8": data_type_t.DT_INT8,
    "u8": data_type_t.DT_UINT8,
    "i16": data_type_t.DT_INT16,
    "u16": data_type_t.DT_UINT16,
    "i32": data_type_t.DT_INT32,
    "u32": data_type_t.DT_UINT32,
}
_STEP = 512  # tensors of a kernel by itself begin at multiples of it, as those of `KernelDevice` do
TARGET = "bm1684x"


class LayerCall(NamedTuple):
    """What a kernel is called with.

    Attributes:
        inputs, outputs: tensors in global memory, without gaps; constants of the network are inputs, too.
        memory: all of local memory that a layer may use.
        i32_params, f32_params: numbers of the layer.
    """

    inputs: tuple[Placed, ...]
    outputs: tuple[Placed, ...]
    memory: LocalMemory
    i32_params: tuple[int, ...] = ()
    f32_params: tuple[float, ...] = ()


LayerFunction = Callable[[LayerCall], Program]
_F = TypeVar("_F", bound=LayerFunction)


@dataclass(frozen=True)
class KernelLayer:
    """A kernel as `register_layer` knows it; see there."""

    name: str
    function: LayerFunction
    tolerance: float
    types: tuple[str, ...]


def register_layer(
    sub_type: str, *, reference: CpuFunction, tolerance: float = 0.0, types: Sequence[str] = ("f32",)
) -> Callable[[_F], _F]:
    """Decorator: the kernel computes `customized` ops of this sub type on the BM1684X.

    It is called with a `LayerCall`. What it refuses (`UsageError`, for example when local memory has no room) is the
    reason why the host computes a layer, by its reference.

    Args:
        reference: function(inputs, i32_params, f32_params) -> array or tuple of arrays: what the layer means. The host
            computes it, calibration asks it, and every proof compares the kernel with it.
        tolerance: how far the kernel may be from it, in units of the largest value of a result; 0: no bit differs.
        types: element types of floats that the kernel takes. Integers of 8, 16 and 32 bits are always taken.

    Raises:
        UnsupportedError: this package gave the sub type another kernel or reference. UsageError: an unknown type.
    """
    unknown = [each for each in types if each not in ("f32", "f16", "bf16")]
    if unknown or not types or tolerance < 0:
        raise UsageError(f"layer '{sub_type}' needs float types among f32, f16, bf16, and a tolerance of 0 or more")

    def register(function: _F) -> _F:
        layer = KernelLayer(sub_type, function, tolerance, tuple(types))
        name = f"{getattr(function, '__name__', sub_type)}_layer"
        made = type(name, (LayerKernel,), {"layer": layer, "__module__": function.__module__, "__doc__": sub_type})
        register_cpu_function(sub_type, reference)
        register_kernel(TARGET, sub_type)(made)
        return function

    return register


@dataclass(frozen=True)
class _Alone:
    """A kernel's program by itself, in memory of its own; None, and why, where the kernel refuses the layer."""

    program: Program | None
    inputs: dict[str, Placed]
    outputs: dict[str, Placed]
    profile: TimingProfile
    refused: str | None = None

    def model(self) -> Bm168xModel:
        """As a model file."""
        assert self.program is not None, "kernels that refuse are not asked"
        return model_of(self.program, self.inputs, self.outputs)

    @cached_property
    def cycles(self) -> int | None:
        """By the timing model of the chip; None without one."""
        return None if self._analysis is None else self._analysis.timing().cycles

    def need_order(self, name: str) -> None:
        """Raise PluginError for commands that no wait orders."""
        races = [] if self._analysis is None else self._analysis.races(1)
        if races:
            raise PluginError(f"the kernel of layer '{name}' races: {races[0]}", remedy="mend its parallel state")

    @cached_property
    def _analysis(self) -> Analysis | None:
        return analysis_of(TARGET, self.model(), 0, self.profile)


class LayerKernel(DeviceKernel[Customized]):
    """customized: what a kernel of TPUKernel issues for it."""

    ops = (Customized,)
    layer: ClassVar[KernelLayer]

    @rule("It must read a tensor")
    def reads(self, op: Customized) -> bool:
        return bool(op.operands)

    @rule("Elements must have types of TPUKernel, floats one that the kernel takes")
    def known_types(self, op: Customized) -> bool:
        values = (*op.operands, *op.results)
        return all(v.dtype in _TYPES and (not v.type.is_float or v.dtype in self.layer.types) for v in values)

    def unsupported_reason(self, op: Customized) -> str | None:
        """Also what the kernel itself refuses."""
        return super().unsupported_reason(op) or self._alone(op).refused

    def estimate(self, op: Customized) -> int | None:
        """By the timing model of the chip, of the commands by themselves."""
        return self._alone(op).cycles

    def emit(self, op: Customized, build: Build) -> Moved:
        operands = [build.source(value) for value in op.operands]
        self._alone(op).need_order(self.layer.name)
        program = self._program(op, operands, [build.neuron(value) for value in op.results])
        build.recorded(program.commands)
        constants = sum(value.type.nbytes for value in op.operands if is_constant(value))
        loaded, stored = (sum(value.type.nbytes for value in values) for values in (op.operands, op.results))
        return Moved(loaded, stored, constants, 1)

    def evaluate(self, op: Customized, *arrays: Array) -> tuple[Array, ...]:
        """What the commands compute by themselves, in memory of their own.

        Raises WrongProgramError where that is further from the reference than the layer allows.
        """
        session = lookup("bmcompiler.runtimes", "session", "runtime")(self._alone(op).model())
        given = {f"in{number}": _stored(array) for number, array in enumerate(arrays)}
        got = session.run(given, raw=True)
        results = tuple(
            np.asarray(got[f"out{number}"]).view(value.type.numpy).reshape(value.shape)
            for number, value in enumerate(op.results)
        )
        for result, wanted in zip(results, op.evaluate(*arrays)):
            self._compare(result, wanted)
        return results

    def _compare(self, got: Array, wanted: Array) -> None:
        with np.errstate(all="ignore"):
            one, other = (array.astype(np.float64) for array in (got, wanted))
            allowed = self.layer.tolerance * max(np.abs(other[np.isfinite(other)]).max(initial=0.0), 0.0)
            apart = np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0.0, np.abs(one - other))
            apart[np.isnan(apart)] = np.inf
        if (apart > allowed).any():
            at = tuple(map(int, np.unravel_index(int(apart.argmax()), apart.shape)))
            raise WrongProgramError(
                f"kernel '{self.layer.name}' is further from its reference than its tolerance of "
                f"{self.layer.tolerance:g} allows: {got[at]:g} instead of {wanted[at]:g} at {list(at)}, "
                f"{int((apart > allowed).sum())} of {apart.size} elements",
                remedy="mend the kernel or its reference, or register it with a larger tolerance",
            )

    def _alone(self, op: Customized) -> _Alone:
        """The kernel's commands for an op, by themselves; recorded once for all ops that are alike."""
        types = tuple((value.shape, value.dtype) for value in (*op.operands, *op.results))
        key = (type(self), types, op.i32_params, op.f32_params)
        return self.machine.once(key, lambda: self._recorded_alone(op))

    def _recorded_alone(self, op: Customized) -> _Alone:
        address, places = CHIP.global_base, []
        for value in (*op.operands, *op.results):
            places.append(address)
            address = align_up(address + value.type.nbytes, _STEP)
        operands, results = places[: len(op.operands)], places[len(op.operands) :]
        profile = cycles_of(self.machine).table.profile
        inputs = {f"in{i}": placed for i, placed in enumerate(_placed(op.operands, operands))}
        outputs = {f"out{i}": placed for i, placed in enumerate(_placed(op.results, results))}
        try:
            program = self._program(op, operands, results)
            program.need_streams()
        except (UsageError, EncodingError) as error:
            return _Alone(None, inputs, outputs, profile, error.reason)
        return _Alone(program, inputs, outputs, profile)

    def _program(self, op: Customized, operands: Sequence[int], results: Sequence[int]) -> Program:
        memory = LocalMemory(end=self.machine.tiler.lane_bytes)
        inputs, outputs = _placed(op.operands, operands), _placed(op.results, results)
        with plugin_code(f"the kernel of layer '{self.layer.name}'"):
            program = self.layer.function(LayerCall(inputs, outputs, memory, op.i32_params, op.f32_params))
        if not isinstance(program, Program):
            raise PluginError(
                f"the kernel of layer '{self.layer.name}' gives no program", remedy="decorate it by @kernel"
            )
        return program


def _placed(values: Sequence[Value], addresses: Sequence[int]) -> tuple[Placed, ...]:
    return tuple(Placed(at, value.shape, _TYPES[value.dtype]) for value, at in zip(values, addresses))


def _stored(array: Array) -> Array:
    """As sessions take it: files hold no scalars, and bfloat16 numbers as their bits."""
    array = array.view(np.uint16) if array.dtype.name == "bfloat16" else array
    return array.reshape(array.shape or (1,))
