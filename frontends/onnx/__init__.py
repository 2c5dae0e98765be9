"""ONNX frontend: `import_onnx(model)` turns an ONNX file (opset 7 to current) into TensorOp IR."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bmcompiler.errors import UsageError
from bmcompiler.frontend import Frontend, Shapes
from bmcompiler.frontends.onnx.registry import onnx_op

if TYPE_CHECKING:
    import onnx

    from bmcompiler.ir import Module

__all__ = ["FRONTEND", "OnnxFrontend", "Shapes", "import_onnx", "onnx_op"]


def import_onnx(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    *,
    shapes: Shapes = None,
    outputs: Sequence[str] | None = None,
    name: str | None = None,
) -> Module:
    """Read an ONNX model into a module with one function.

    Args:
        model: path of the file, its bytes, or a loaded `onnx.ModelProto`, which stays as it is.
        shapes: shapes that replace those of the file, in input order or by input name.
        outputs: tensor or node names that become the outputs, in this order; what only serves others is left out.
        name: name of the function; default is the file name without its suffix.

    Raises:
        FileFormatError: the file is not a sound ONNX model.
        ShapeError: shapes in it do not fit together.
        UnsupportedError: it needs something that has no converter, or has dynamic dimensions.
        UsageError: `shapes` or `outputs` name something that is not in the model.
    """
    from bmcompiler.frontends.onnx.importer import import_model

    return import_model(model, shapes, outputs, name)


class OnnxFrontend(Frontend):
    """The frontend object behind entry point `onnx` (group `bmcompiler.frontends`)."""

    name = "onnx"
    suffixes = (".onnx",)

    def takes(self, model: object) -> bool:
        """Bytes, and what `onnx.load` gives."""
        import onnx

        return isinstance(model, bytes | onnx.ModelProto)

    def load_plugins(self) -> None:
        from bmcompiler.frontends.onnx.registry import load_converters

        load_converters()

    def load(
        self,
        model_path: str | os.PathLike[str] | bytes | onnx.ModelProto,
        weights_path: str | os.PathLike[str] | None = None,
        *,
        shapes: Shapes = None,
        outputs: Sequence[str] | None = None,
        name: str | None = None,
    ) -> Module:
        """`import_onnx` for the driver; ONNX files hold their own weights, so `weights_path` must be None."""
        if weights_path is not None:
            raise UsageError(
                "an ONNX model takes no separate weights file", file=weights_path, remedy="leave the second file out"
            )
        return import_onnx(model_path, shapes=shapes, outputs=outputs, name=name)


FRONTEND = OnnxFrontend()
