"""A PyTorch module as an ONNX network, by torch's own exporter."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from bmcompiler.errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    import onnx


def exported(module: Any, sample_inputs: object) -> onnx.ModelProto:
    """The network that a module computes in evaluation, with the shapes of these inputs; the module stays as it is.

    Args:
        module: a `torch.nn.Module`.
        sample_inputs: what it is called with: one tensor or array, a sequence of them, or a mapping by the names of
            the arguments of `forward`; sequences and mappings in them are handed on, numbers are constants.

    Raises:
        UnsupportedError: torch or its exporter is not installed, or the exporter refuses the module, with its reason.
        UsageError: the module is none, cannot be called with these inputs, or gives no tensor.
    """
    try:
        import torch
        from torch.onnx import OnnxExporterError
    except ImportError as error:
        raise UnsupportedError(
            f"sample_inputs are for PyTorch modules, and there is no {error.name}",
            remedy="pip install 'bmcompiler[torch]'",
        ) from None
    if not isinstance(module, torch.nn.Module):
        raise UsageError(f"sample_inputs are for a torch.nn.Module, got {type(module).__name__}")
    name = type(module).__name__
    positional, named = _arguments(sample_inputs, torch)
    with _evaluating(module), _without_advice():
        _called(module, name, positional, named, torch)
        try:
            program = torch.onnx.export(module, positional, kwargs=named, dynamo=True, verbose=False)
        except ImportError as error:
            reason = f"torch exports with {error.name}, which is not installed"
            raise UnsupportedError(reason, remedy="pip install 'bmcompiler[torch]'") from None
        except (OnnxExporterError, torch._dynamo.exc.TorchDynamoException, RuntimeError) as error:
            raise UnsupportedError(
                f"torch does not export {name}: {_reason(error)}",
                remedy="torch.export.export(module, inputs) shows where; control flow on values must go",
            ) from error
    found: onnx.ModelProto = program.model_proto
    return found


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """The module in evaluation, and afterwards each of its parts in the mode it had."""
    modes = [(each, each.training) for each in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for each, training in modes:
            each.training = training


@contextmanager
def _without_advice() -> Iterator[None]:
    """What the exporter lacks for ops that no module here needs (torchvision's) is not the user's concern."""
    exporter = logging.getLogger("torch.onnx")
    level = exporter.level
    exporter.setLevel(logging.ERROR)
    try:
        yield
    finally:
        exporter.setLevel(level)


def _called(module: Any, name: str, positional: tuple[Any, ...], named: dict[str, Any], torch: Any) -> None:
    """Raise UsageError where the module itself does not take the inputs or gives no tensor, before torch traces it."""
    try:
        with torch.no_grad():
            given = module(*positional, **named)
    except Exception as error:  # whatever the user's own code raises
        raise UsageError(
            f"{name} cannot be called with these sample_inputs: {_reason(error)}",
            remedy="give what forward takes: one tensor, a sequence in its order, or a mapping by its names",
        ) from error
    leaves, _ = torch.utils._pytree.tree_flatten(given)
    if not any(isinstance(leaf, torch.Tensor) for leaf in leaves):
        raise UsageError(f"{name} gives no tensor", remedy="return from forward what the network computes")


def _arguments(sample_inputs: object, torch: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    taken = _taken(sample_inputs, torch)
    if isinstance(taken, dict):
        return (), taken
    return (taken if isinstance(taken, tuple) else (taken,)), {}


def _taken(value: object, torch: Any) -> Any:
    """Arrays as tensors, also within sequences and mappings; what is no array as it is."""
    if isinstance(value, Mapping):
        return {name: _taken(each, torch) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_taken(each, torch) for each in value)
    return torch.as_tensor(value) if isinstance(value, np.ndarray | np.generic) else value


def _reason(error: BaseException) -> str:
    """The first line of what lies at the bottom: the exporter wraps it in advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    return next((line.strip().rstrip(":") for line in str(error).splitlines() if line.strip()), type(error).__name__)
