"""What programs call: `bmcompiler.compile`, `compile_module`, `load_network`; the commands call `bmcompiler.driver`."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import update_wrapper, wraps
from typing import ParamSpec, TypeVar

from bmcompiler import driver
from bmcompiler.errors import UnknownOptionError
from bmcompiler.files.kinds import MODEL, TEXT
from bmcompiler.files.overwriting import refuse_overwriting
from bmcompiler.files.store import check_output
from bmcompiler.ir import Module
from bmcompiler.options import ModuleOptions, Options, Path_
from bmcompiler.result import Result
from bmcompiler.spelling import flag

P = ParamSpec("P")
R = TypeVar("R")
Request = TypeVar("Request", bound=ModuleOptions)


def _suggesting(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose unknown arguments are answered with a suggestion."""
    known = list(inspect.signature(function).parameters)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in known:
                raise UnknownOptionError(
                    f"{function.__name__}() has no argument '{name}'", remedy=_suggestion(name, known)
                )
        return function(*args, **kwargs)

    return call


def _suggestion(name: str, known: Sequence[str]) -> str:
    argument = next((each for each in known if flag(each) == flag(name)), name)
    near = difflib.get_close_matches(argument, known, 1, 0.5)
    return f"did you mean {near[0]}?" if near else f"choose from {', '.join(known)}"


load_network = _suggesting(driver.load_network)


@dataclass(kw_only=True)
class ModuleRequest(ModuleOptions):
    """The arguments of `compile_module`: a module, the options, and the model file to write."""

    module: Module = field(kw_only=False)
    output: Path_ | None = None


@dataclass(kw_only=True)
class FileRequest(Options):
    """The arguments of `compile`: a network's file, or two, the options, and the model file to write."""

    model: Path_ = field(kw_only=False)
    weights: Path_ | None = field(default=None, kw_only=False)
    output: Path_ | None = None


def _called_as(request: Callable[P, Request]) -> Callable[[Callable[[Request], Result]], Callable[P, Result]]:
    """What makes a function of a request one of the request's fields, for type checkers and `help` as well."""
    signature = inspect.signature(request)

    def decorate(function: Callable[[Request], Result]) -> Callable[P, Result]:
        def call(*args: P.args, **kwargs: P.kwargs) -> Result:
            signature.bind(*args, **kwargs)
            return function(request(*args, **kwargs))

        update_wrapper(call, function)
        vars(call).update(__signature__=signature.replace(return_annotation="Result"))
        del vars(call)["__wrapped__"]
        return call

    return decorate


@_suggesting
@_called_as(FileRequest)
def compile(request: FileRequest) -> Result:
    """Compile a network for a chip.

    Args:
        model: .onnx, .prototxt or .mlir file.
        weights: the .caffemodel of a .prototxt.
        output: model file to write; `Result.save` does it later.
        target: name of the chip.
        quantize: "f32", "f16", "bf16" or "int8", as far as the chip has it; None for the chip's own.
        data: calibration samples, real values: an .npz or .npy file, a folder of them, or arrays by input name,
            samples on axis 0.
        images: images as calibration samples, in place of `data`.
        limit: how many of the samples are used, the first ones; None for all.
        table: calibration table file, in place of samples.
        method: how thresholds are chosen; None for the chip's own.
        quant_table: file that says how each layer computes in int8; written where there is none.
        io_dtype: "float" (the same as "f32") or "int8" inputs and outputs of an int8 net, None for the chip's own.
        max_error: percent that the worst group of output channels of an int8 net may be from float, whatever it costs.
        max_cycles: how many times the cycles of the cheapest int8 program may be spent on accuracy.
        metric: what outputs decide, which an int8 net is judged by: "auto" (told from structure and values), the name
            of a kind (docs/accuracy.md), "norm" for nothing, or a function (outputs, float outputs) -> (kept, of), also
            as "module:function".
        opt: 0 serial commands, 1 transfers overlap, 2 all.
        name: name of the net, None for that in the file.
        shapes: one shape per input; or several such lists, for a model with a program per list.
        outputs: tensors or layers that become the outputs, None for the net's own.
        pipeline: pass pipeline in place of the chip's.
        print_ir_after: name of a pass after which the IR goes to `log`, or "all".
        verify_each: verify the IR after every pass.
        save_ir: file for the final IR (.mlir, weights beside it).
        timing_profile: parameters of the timing model that plans are made by
            (`bmcompiler.analysis.timing_profile.profile_for`), None for the chip's own.
        check: "auto", "never", "always" or a number of samples: prove the program before it is written, on the
            simulator against `evaluate`, bit for bit; "auto" where that takes little of the compilation.
        keep_bad: folder for the smallest part of a network whose program was found wrong: IR, weights, sample.
        log: receives printed IR.
        progress: wraps long loops.
        pool: who computes what calibration and the choice of modes need per sample (`bmcompiler.parallel.open_pool`),
            None for this process; the result does not depend on it.

    Raises:
        UnknownOptionError: a misspelt argument (a TypeError, too).
        WrongProgramError: the program is not what the network means, an error of this compiler; nothing is written.
        BMError: everything else that can be wrong, in a sentence with a remedy.
        OSError: `output` cannot be written.
    """
    _keep_inputs(request, request.output, request.model, request.weights)
    return _saved(driver.compile_network(request.model, request.weights, request), request.output)


@_suggesting
@_called_as(ModuleRequest)
def compile_module(request: ModuleRequest) -> Result:
    """Compile a module, which stays as it is; arguments mean what they mean for `compile`.

    Raises:
        VerifyError: a module that breaks a rule of the IR.
        BMError, OSError: as `compile`.
    """
    _keep_inputs(request, request.output)
    return _saved(driver.compile_ir(request.module, request), request.output)


def _keep_inputs(options: ModuleOptions, output: Path_ | None, *files: Path_ | None) -> None:
    """Raise UsageError for an output that would take the place of an input or of another kind of file, OSError."""
    if output is None and options.save_ir is None:
        return
    given = (options.data, options.table, options.quant_table, options.images and options.images.path)
    inputs = [*files, *(each for each in given if isinstance(each, str | os.PathLike))]
    refuse_overwriting((output, options.save_ir), inputs)
    for path, kind in ((output, MODEL), (options.save_ir, TEXT)):
        if path is not None:
            check_output(path, kind)


def _saved(result: Result, output: Path_ | None) -> Result:
    if output is not None:
        result.save(output)
    return result
