"""A PyTorch module as an ONNX network, by torch's own exporter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bmcompiler.errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    import onnx


def exported(module: Any, sample_inputs: object) -> onnx.ModelProto:
    """The network that a module computes in evaluation, with the shapes of these inputs; the module stays as it is.

    Args:
        module: a `torch.nn.Module`.
        sample_inputs: what it is called with: one tensor or array, a sequence of them, or a mapping by the names of
            the arguments of `forward`.

    Raises:
        UnsupportedError: torch or its exporter is not installed, or the exporter refuses the module, with its reason.
        UsageError: the module is none.
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
    positional, named = _arguments(sample_inputs, torch.as_tensor)
    modes = [(each, each.training) for each in module.modules()]
    module.eval()
    try:
        program = torch.onnx.export(module, positional, kwargs=named, dynamo=True, verbose=False)
    except ImportError as error:
        reason = f"torch exports with {error.name}, which is not installed"
        raise UnsupportedError(reason, remedy="pip install 'bmcompiler[torch]'") from None
    except (OnnxExporterError, torch._dynamo.exc.TorchDynamoException, RuntimeError) as error:
        raise UnsupportedError(
            f"torch does not export {type(module).__name__}: {_reason(error)}",
            remedy="torch.export.export(module, inputs) shows where; control flow on values must go",
        ) from error
    finally:
        for each, training in modes:
            each.training = training
    found: onnx.ModelProto = program.model_proto
    return found


def _arguments(sample_inputs: object, as_tensor: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(sample_inputs, Mapping):
        return (), {name: as_tensor(value) for name, value in sample_inputs.items()}
    if isinstance(sample_inputs, Sequence) and not isinstance(sample_inputs, str):
        return tuple(map(as_tensor, sample_inputs)), {}
    return (as_tensor(sample_inputs),), {}


def _reason(error: BaseException) -> str:
    """The first line of what lies at the bottom: the exporter wraps it in advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
