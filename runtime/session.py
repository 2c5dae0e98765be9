"""Run a compiled model on named numpy arrays: quantization, batching and choice of program are done here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from bmcompiler import bmodel
from bmcompiler.bmodel import BModel, Stage, TensorInfo
from bmcompiler.errors import BMError, RuntimeUseError
from bmcompiler.inputs.source import Samples
from bmcompiler.ir.types import numpy_dtype
from bmcompiler.numeric import quant_modes
from bmcompiler.numeric.arith import dequantize, quantize_real
from bmcompiler.numeric.arrays import Array, Ints
from bmcompiler.runtime.devices import LoadedProgram, open_device
from bmcompiler.runtime.pictures import TakesPictures
from bmcompiler.runtime.steps import batch_of, in_steps
from bmcompiler.sizes.choice import Fit, fit_in_steps, why_not
from bmcompiler.sizes.note import Size, decoded

_QUANTIZED = {"int8": "i8", "uint8": "u8"}
_SCALED = {**_QUANTIZED, "int16": "i16", "uint16": "u16"}
_DTYPES = ("float32", "float16", "bfloat16", "int32", "int16", "uint16", "int8", "uint8")
_Inputs = Mapping[str, ArrayLike | Samples] | ArrayLike


class Session(TakesPictures):
    """A net of a compiled model on a device.

        session = Session("lenet.bmodel")
        scores = session.run({"data": images})["prob"]      # float32 in, float32 out
        with Session("lenet.bmodel") as session: ...        # the device's memory is given back behind it

    A model may have several nets; `net` gives a session of another one, on the same device memory. Other sessions share
    nothing, so each thread may have its own; one session may also be used by several threads, in turn.
    """

    _loaded: list[LoadedProgram]
    _programs: list[LoadedProgram]
    _sizes: list[Size]

    def __init__(
        self, model: str | Path | bytes | BModel, device: int | str = 0, *, net: str | None = None, fast: bool = False
    ) -> None:
        """Load a model file, its bytes, or a model in memory, on a device of its chip.

        Args:
            device: number of a simulated one ("sim:0" is 0), or "board:0": a board behind the vendor's installed
                libraries, for chips that have such a device plugin.
            net: name of the net to run; by default the first.
            fast: let the simulator add floats in any order: quicker, and close to the results of the chip, not
                equal; integers are not affected. `mode` then says what is different.

        Raises:
            FileFormatError: not a model file, or a malformed one.
            UnsupportedError: no device plugin serves its chip, or its device has no fast mode.
            RuntimeUseError: there is no net of that name.
            OSError: the file cannot be opened.
        """
        file = model if isinstance(model, str | os.PathLike) else None
        if isinstance(model, BModel):
            self.model = model
        else:
            self.model = bmodel.loads(model, "the model") if isinstance(model, bytes) else bmodel.load(model)
        try:
            opened = open_device(self.model.target, device, fast)
            self.mode = opened.fast_mode if fast else ""
            self._loaded = opened.load(self.model)
            self._owners = [stage.net for stage in self.model.stages()]
            self._choose_net(net)
        except BMError as error:
            raise error.located(file=file) from None

    def close(self) -> None:
        """Give the device's memory back; what runs after that raises RuntimeUseError."""
        self._loaded, self._programs = [], []

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _choose_net(self, name: str | None) -> None:
        if not self._loaded:
            raise RuntimeUseError("the model has no program")
        if name is not None and name not in self._owners:
            raise RuntimeUseError(f"the model has no net '{name}'", remedy=f"choose one of: {', '.join(self.nets)}")
        wanted = self.nets[0] if name is None else name
        self._net = wanted
        self._programs = [one for one, owner in zip(self._loaded, self._owners) if owner == wanted]
        for program in self._programs:
            for info in (*program.inputs, *program.outputs):
                if info.dtype not in _DTYPES:
                    raise RuntimeUseError(f"tensor '{info.name}' has elements of {info.dtype}, which cannot be passed")
        self._names = _input_names(self._programs[0].inputs)
        self._sizes = decoded(next(each.sizes for each in self.model.stages() if each.net == wanted))

    @property
    def nets(self) -> tuple[str, ...]:
        """Names of the nets, in file order."""
        return tuple(dict.fromkeys(self._owners))

    def net(self, name: str) -> Session:
        """A session of another net of the model, on the same device memory. Raises RuntimeUseError when it has none."""
        other = copy(self)
        other._choose_net(name)
        return other

    def memory(self, name: str) -> Array:
        """The memory of a kept input or output, as device values: shape and `stored` type of its largest program.

        What is written there is what programs read where `run` is not given the input. It is zero at first.

        Raises:
            RuntimeUseError: there is no such tensor, or the next run of any net may overwrite it.
        """
        found = [
            (program, info)
            for program in self._programs
            for info in (*program.inputs, *program.outputs)
            if info.name == name and info.kept
        ]
        if not found:
            raise RuntimeUseError(f"the net keeps no tensor '{name}' from run to run")
        program, info = max(found, key=lambda one: one[1].size)
        return program.memory(info)

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """Inputs (name, shape, dtype, threshold) of the first program; unnamed ones are called input, input1, ..."""
        return tuple(replace(info, name=name) for info, name in zip(self._programs[0].inputs, self._names))

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """Outputs (name, shape, dtype, threshold) of the first program."""
        return self._programs[0].outputs

    @property
    def pictures(self) -> str:
        """What the net says of pictures, as its file has it; `preprocessing` reads it."""
        return self._stage.pictures

    @property
    def ranges(self) -> str:
        """How large values of the net's inputs are, as its file has it."""
        return self._stage.ranges

    @property
    def _stage(self) -> Stage:
        """The first program of the net."""
        return next(each for each in self.model.stages() if each.net == self._net)

    def __repr__(self) -> str:
        sides = [
            ", ".join(f"{info.name} {'x'.join(map(str, info.shape))} {info.dtype}" for info in tensors)
            for tensors in (self.inputs, self.outputs)
        ]
        count = len(self._programs)
        more = f", the first of {count} programs" if count > 1 else ""
        return f"<Session on {self.model.target}: {sides[0]} -> {sides[1]}{more}>"

    def named(self, inputs: _Inputs) -> Mapping[str, ArrayLike | Samples]:
        """Inputs by name; one array alone is that of the only input. Raises RuntimeUseError for nets with several."""
        if isinstance(inputs, Mapping):
            return inputs
        if len(self._names) != 1:
            raise RuntimeUseError(
                f"the model has {len(self._names)} inputs, one array was given",
                remedy=f"pass a dict with: {', '.join(self._names)}",
            )
        return {self._names[0]: inputs}

    def run(
        self,
        inputs: _Inputs,
        raw: bool = False,
        progress: Callable[[range], Iterable[int]] = iter,
        into: Mapping[str, Array] | None = None,
    ) -> dict[str, Array]:
        """Run the model on inputs by name, or on the array of the only input.

        Real inputs are quantized with the input's threshold (bm1880.md 11.2) or scale and zero point, and outputs
        dequantized to float32; `raw` passes device values both ways, those of bfloat16 as the uint16 of their bits.
        float32 tensors of the device are passed as they are, and so are outputs of int32 of scale 1: indices and
        counts, which float32 would round above 2^24. Kept inputs may be left out: the net has them in `memory`.
        `into` names outputs that are stored as device values in an array, too, part of such memory for instance. The
        leading axis may be larger than the compiled batch: the model runs in steps, and the last one is filled
        up with zeros. Of several programs the one with the wanted shape (or the best batch for it) is used. Where the
        network allows it (`bmcompiler.sizes`), inputs of other sizes are filled up with zeros to the next larger
        program, and outputs are cut; an attention mask of zeros is what keeps filled positions out. `Samples`
        (images, folders of files; see `bmcompiler.inputs`) are read step by step. `progress` is given the steps and
        yields them again, for a progress bar.

        Raises:
            RuntimeUseError: missing or unknown names, shapes no program has, values that do not fit, NaN but for device
                values of floats.
            SimulatorError: a command that fails, by number.
        """
        inputs = self.named(inputs)
        self._check_names(inputs)
        arrays = [_as_array(name, inputs[name]) if name in inputs else None for name in self._names]
        fitted = self._fit([None if array is None else array.shape for array in arrays])
        program = self._programs[fitted.program]
        values = [
            None if array is None else _on_device(name, info, _filled(fitted, index, info, array, raw), raw)
            for index, (name, info, array) in enumerate(zip(self._names, program.inputs, arrays))
        ]
        batch = batch_of(program) if fitted.samples is None else fitted.samples
        results = [fitted.cut(index, each) for index, each in enumerate(in_steps(program, values, batch, progress))]
        for name, target in (into or {}).items():
            _store(name, {info.name: value for info, value in zip(program.outputs, results)}, target)
        return {info.name: value if raw else _from_device(info, value) for info, value in zip(program.outputs, results)}

    def program_for(self, inputs: Mapping[str, ArrayLike | Samples]) -> int:
        """Index of the program that `run` uses for these inputs. Raises RuntimeUseError as `run` does."""
        self._check_names(inputs)
        shapes = [_as_array(name, inputs[name]).shape if name in inputs else None for name in self._names]
        return self._loaded.index(self._programs[self._fit(shapes).program])

    def _check_names(self, inputs: Mapping[str, ArrayLike | Samples]) -> None:
        if not self._programs:
            raise RuntimeUseError("the session is closed", remedy="open another one")
        wanted = ", ".join(self._names)
        for name, info in zip(self._names, self._programs[0].inputs):
            if name not in inputs and not info.kept:
                raise RuntimeUseError(f"input '{name}' is missing", remedy=f"pass exactly: {wanted}")
        for name in inputs:
            if name not in self._names:
                raise RuntimeUseError(f"the model has no input '{name}'", remedy=f"pass exactly: {wanted}")

    def _shapes(self) -> list[list[tuple[int, ...]]]:
        return [[info.shape for info in program.inputs] for program in self._programs]

    def _fit(self, shapes: Sequence[tuple[int, ...] | None]) -> Fit:
        """The program to run, the shapes that inputs are filled up to, and the number of samples given."""
        found = fit_in_steps(self._shapes(), self._sizes, shapes)
        if found is None:
            remedy = "reshape the samples, or compile the network for these shapes"
            raise RuntimeUseError(self._shape_complaint(shapes), remedy=remedy)
        if found.samples is not None and found.samples < 1:
            raise RuntimeUseError("the inputs are empty: their leading axis is 0")
        return found

    def _shape_complaint(self, shapes: Sequence[tuple[int, ...] | None]) -> str:
        given = ", ".join(f"'{name}' {list(shape)}" for name, shape in zip(self._names, shapes) if shape is not None)
        known = " or ".join(
            ", ".join(f"'{name}' {list(info.shape)}" for name, info in zip(self._names, program.inputs))
            for program in self._programs[:4]
        )
        more = f" or {len(self._programs) - 4} other shapes" if len(self._programs) > 4 else ""
        why = why_not(self._sizes, self._shapes(), shapes, self._names)
        samples = f"; {why}" if why else " (any number of samples)"
        return f"input shapes {given} do not fit the model, which takes {known}{more}{samples}"


def _filled(fitted: Fit, index: int, info: TensorInfo, array: Array | Samples, raw: bool) -> Array | Samples:
    """An input filled up: with what stands for 0 on the device where it has device values."""
    filled: Array | Samples = fitted.filled(index, array, info.zero_point if raw and info.scale else 0)
    return filled


def _input_names(inputs: Sequence[TensorInfo]) -> tuple[str, ...]:
    """Names of the inputs; vendor files have none."""
    return tuple(info.name or ("input" if index == 0 else f"input{index}") for index, info in enumerate(inputs))


def _as_array(name: str, value: ArrayLike | Samples) -> Array | Samples:
    array = value if isinstance(value, Samples) else np.asarray(value)
    if array.dtype == numpy_dtype("bf16") and not isinstance(array, Samples):
        array = array.astype(np.float32)
    if array.dtype.kind not in "fiub":
        raise RuntimeUseError(f"input '{name}' is an array of {array.dtype}, numbers are needed")
    return array if isinstance(array, Samples) or array.ndim else array.reshape(1)  # files hold no scalars


def _on_device(name: str, info: TensorInfo, given: Array | Samples, raw: bool) -> Array | Samples:
    return _LaterOnDevice(name, info, given, raw) if isinstance(given, Samples) else _to_device(name, info, given, raw)


def _to_device(name: str, info: TensorInfo, array: Array, raw: bool) -> Array:
    """The device values of one input."""
    if array.dtype.kind == "f" and not (raw and "float" in info.dtype) and np.isnan(array).any():
        raise RuntimeUseError(f"input '{name}' contains NaN", remedy="remove the broken samples")
    if info.dtype == "bfloat16":
        return array if raw and array.dtype == np.uint16 else array.astype(numpy_dtype("bf16")).view(np.uint16)
    dtype = np.dtype(info.dtype)
    if not raw and info.scale and info.dtype in _SCALED:
        return quant_modes.quantize_away(array, info.scale, _SCALED[info.dtype], info.zero_point)
    itself = info.dtype == "uint8" or array.dtype.kind == "b" or array.dtype == dtype  # pixels, masks, integers
    if not raw and info.dtype in _QUANTIZED and (info.threshold or not itself):
        if not info.threshold:
            raise RuntimeUseError(
                f"the model does not say the scale of input '{name}'", remedy="pass device integers with raw=True"
            )
        return quantize_real(array, info.threshold, _QUANTIZED[info.dtype])
    if dtype.kind == "f":
        return array.astype(dtype)
    if array.dtype.kind == "f" and not (array == np.floor(array)).all():
        remedy = f"pass {info.dtype} values of the device, or real values without raw mode"
        raise RuntimeUseError(f"input '{name}' needs whole numbers of {info.dtype}", remedy=remedy)
    limits = np.iinfo(dtype)
    if array.size and (array.min() < limits.min or array.max() > limits.max):
        reason = f"input '{name}' has values outside {info.dtype} ({limits.min} to {limits.max})"
        raise RuntimeUseError(
            reason, remedy="pass values in that range" + (", or real values without raw mode" if raw else "")
        )
    return array.astype(dtype)


class _LaterOnDevice(Samples):
    """Samples as device values, made when they are read."""

    def __init__(self, name: str, info: TensorInfo, given: Samples, raw: bool) -> None:
        self._name, self._info, self._given, self._raw = name, info, given, raw
        self.shape, self.dtype = given.shape, np.dtype(info.stored)

    def take(self, indices: Sequence[int] | Ints) -> Array:
        return _to_device(self._name, self._info, self._given.take(indices), self._raw)


def _from_device(info: TensorInfo, value: Array) -> Array:
    """Real values of one output; int8 to int16 of unknown scale become the same numbers as float32."""
    if info.dtype == "bfloat16":
        value = value.view(numpy_dtype("bf16"))
    if info.dtype == "int32" and info.scale in (0, 1) and not info.zero_point:
        return value
    if info.scale and value.dtype.kind in "iu":
        return quant_modes.dequantize(value, info.scale, info.zero_point)
    if info.dtype in _QUANTIZED and info.threshold:
        return dequantize(value, info.threshold)
    return value if value.dtype == np.float32 else value.astype(np.float32)


def _store(name: str, results: Mapping[str, Array], target: Array) -> None:
    if name not in results:
        raise RuntimeUseError(f"the model has no output '{name}'", remedy=f"name one of: {', '.join(results)}")
    value = results[name]
    if target.dtype != value.dtype or target.size != value.size:
        raise RuntimeUseError(
            f"output '{name}' has {value.size} elements of {value.dtype}, its place {target.size} of {target.dtype}"
        )
    target[...] = value.reshape(target.shape)
