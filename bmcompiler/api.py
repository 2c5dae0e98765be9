"""What programs call: `bmcompiler.compile`, `compile_module`, `load_network`; the commands call `bmcompiler.driver`."""

from __future__ import annotations

import difflib
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import update_wrapper, wraps
from typing import ParamSpec, TypeVar

from bmcompiler import driver
from bmcompiler.defaults import TARGET
from bmcompiler.errors import UnknownOptionError, UsageError
from bmcompiler.files.kinds import MODEL, TEXT
from bmcompiler.files.overwriting import refuse_overwriting
from bmcompiler.files.store import check_output
from bmcompiler.files.torch_module import exported
from bmcompiler.frontend import file_of
from bmcompiler.ir import Module
from bmcompiler.options import ModuleOptions, Network, Options, Path_
from bmcompiler.plugins.registry import entry_points
from bmcompiler.result import Result
from bmcompiler.spelling import flag
from bmcompiler.told import Told, arguments, told

P = ParamSpec("P")
R = TypeVar("R")
Request = TypeVar("Request", bound=ModuleOptions)


_BEFORE = {"metric": "decisions"}
"""Arguments of before -> what they are called since."""


def _suggesting(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose unknown arguments are answered with a suggestion, and which takes those of before."""
    known = list(inspect.signature(function).parameters)
    renamed = {former: name for former, name in _BEFORE.items() if name in known}

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for former in renamed.keys() & kwargs.keys() - set(known):
            text = f"{function.__name__}() calls {former} {renamed[former]} now; {former} goes in version 0.4"
            warnings.warn(text, FutureWarning, stacklevel=2)
            kwargs.setdefault(renamed[former], kwargs.pop(former))
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

    module: Module = field(kw_only=False, metadata={"told": Told("The network, which stays as it is.")})
    output: Path_ | None = told(None, "Model file to write; `Result.save` does it later.")


@dataclass(kw_only=True)
class FileRequest(Options):
    """The arguments of `compile`: a network's file, or two, the options, and the model file to write."""

    model: Network = field(
        kw_only=False,
        metadata={
            "told": Told(".onnx, .prototxt or .mlir file, an `onnx.ModelProto` or its bytes, or a PyTorch module.")
        },
    )
    sample_inputs: object = told(
        None,
        "For a `torch.nn.Module` as `model`: what it is called with, one tensor, several, or by name; shapes count.",
    )
    weights: Path_ | None = field(default=None, kw_only=False, metadata={"told": Told("The .caffemodel, if any.")})
    output: Path_ | None = told(None, "Model file to write; `Result.save` does it later.")


def _called_as(request: Callable[P, Request]) -> Callable[[Callable[[Request], Result]], Callable[P, Result]]:
    """What makes a function of a request one of the request's fields, for type checkers and `help` as well."""
    signature = inspect.signature(request)

    def decorate(function: Callable[[Request], Result]) -> Callable[P, Result]:
        def call(*args: P.args, **kwargs: P.kwargs) -> Result:
            signature.bind(*args, **kwargs)
            if "target" not in kwargs:
                chips = ", ".join(entry_points("bmcompiler.targets"))
                text = f"{function.__name__}() compiles for {TARGET}, as no target is given; version 0.4 will need one"
                warnings.warn(f"{text} of {chips}", FutureWarning, stacklevel=3)
            return function(request(*args, **kwargs))

        update_wrapper(call, function)
        call.__doc__ = str(function.__doc__).replace("{arguments}", f"Args:\n{arguments(request)}")
        vars(call).update(__signature__=signature.replace(return_annotation="Result"))
        del vars(call)["__wrapped__"]
        return call

    return decorate


@_suggesting
@_called_as(FileRequest)
def compile(request: FileRequest) -> Result:
    """Compile a network for a chip.

    {arguments}

    Raises:
        UnknownOptionError: a misspelt argument (a TypeError, too).
        WrongProgramError: the program is not what the network means, an error of this compiler; nothing is written.
        BMError: everything else that can be wrong, in a sentence with a remedy.
        OSError: `output` cannot be written.
    """
    _keep_inputs(request, request.output, file_of(request.model), request.weights)
    if request.sample_inputs is not None or _is_torch_module(request.model):
        request.model = _of_torch(request.model, request.sample_inputs)
    return _saved(driver.compile_network(request.model, request.weights, request), request.output)


@_suggesting
@_called_as(ModuleRequest)
def compile_module(request: ModuleRequest) -> Result:
    """Compile a module, which stays as it is.

    {arguments}

    Raises:
        VerifyError: a module that breaks a rule of the IR.
        BMError, OSError: as `compile`.
    """
    _keep_inputs(request, request.output)
    return _saved(driver.compile_ir(request.module, request), request.output)


def _is_torch_module(model: object) -> bool:
    """Whether this is a `torch.nn.Module`; torch is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _of_torch(module: object, sample_inputs: object) -> Network:
    if sample_inputs is None:
        raise UsageError(
            "a torch.nn.Module has no shapes of its own", remedy="give sample_inputs, what the module is called with"
        )
    return exported(module, sample_inputs)


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
