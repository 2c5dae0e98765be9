"""`.mlir` files: the text of a module with its weights in a side file, and the frontend that reads them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bmcompiler.errors import FileFormatError, UsageError
from bmcompiler.files.kinds import ARRAYS, TEXT
from bmcompiler.files.store import atomic_output, check_output, read_text
from bmcompiler.frontend import Frontend, Shapes, StrPath
from bmcompiler.ir import Function, Module, Operation, Value, Weights, erase_dead, verify_module
from bmcompiler.ir.keys import TENSOR_NAME, WEIGHT
from bmcompiler.ops import parse_module


def side_file(path: StrPath) -> Path:
    """Where the weights of an IR file lie: net.mlir -> net.weights.npz; a device such as /dev/null takes both."""
    path = Path(path)
    if path.is_char_device() or not path.name:  # "" and / are folders, which readers say
        return path
    return path.with_name((path.stem if path.suffix == ".mlir" else path.name) + ".weights.npz")


def save_module(module: Module, path: StrPath) -> None:
    """Write the text of `module` to `path`, with the sha256 of each weight, and the weights beside it (`side_file`).

    Each file appears whole or not at all; there is no side file for a module without weights, and weights that no op
    refers to are left out. Raises OSError when a file cannot be written.
    """
    used = _weight_ops(module)
    weights = Weights()
    for op in used:
        weights[op.attributes["key"]] = module.weights[op.attributes["key"]]
    check_output(path, TEXT)
    if weights and not Path(path).is_char_device():  # /dev/null does not say where it is, as archives ask
        with atomic_output(side_file(path), ARRAYS) as stream:
            weights.save(stream)
    try:
        for op in used:
            op.attributes["sha256"] = weights.digest(op.attributes["key"])
        text = str(module)
    finally:
        for op in used:
            op.attributes.pop("sha256", None)
    with atomic_output(path, TEXT) as stream:
        stream.write(text)


def load_module(path: StrPath, weights_path: StrPath | None = None) -> Module:
    """Read what `save_module` wrote, verified; weights are memory-mapped.

    Args:
        weights_path: the side file, when it lies elsewhere than beside `path`.

    Raises:
        FileFormatError: the text is malformed, or a weight is missing or differs from its sha256 in the text.
        VerifyError, ShapeError: the text is well-formed but breaks a rule of the IR.
        OSError: a file cannot be read.
    """
    try:
        text = read_text(path)
    except UnicodeDecodeError as error:
        raise FileFormatError(f"not a text file ({error.reason} at byte {error.start})", file=path) from None
    module = parse_module(text, path)
    used = _weight_ops(module)
    if used:
        module.weights = _checked_weights(used, path, Path(weights_path or side_file(path)))
    verify_module(module)
    return module


def _weight_ops(module: Module) -> list[Operation]:
    return [op for op in module.walk() if op.name == WEIGHT]


def _checked_weights(used: list[Operation], path: StrPath, weights_path: Path) -> Weights:
    if not weights_path.is_file():
        raise FileFormatError(
            f"its weights file {weights_path} does not exist",
            file=path,
            remedy="keep both files together when moving them",
        )
    weights = Weights.load(weights_path)
    for op in used:
        key, digest = op.attributes["key"], op.attributes.pop("sha256", None)
        if key not in weights:
            raise FileFormatError(f"weight '{key}' of {path} is missing", file=weights_path)
        if digest is not None and weights.digest(key) != digest:
            raise FileFormatError(
                f"weight '{key}' is not the one that {path} was saved with (its sha256 differs)",
                file=weights_path,
                remedy="use the weights file that was written together with the text",
            )
    return weights


class MlirFrontend(Frontend):
    """The frontend object behind entry point `mlir` (group `bmcompiler.frontends`)."""

    name = "mlir"
    suffixes = (".mlir",)

    def load(
        self,
        model_path: StrPath,
        weights_path: StrPath | None = None,
        *,
        shapes: Shapes = None,
        outputs: Sequence[str] | None = None,
        name: str | None = None,
    ) -> Module:
        """`load_module` for the driver.

        Args:
            shapes: must equal those of the file, which are fixed.
            outputs: input, output, tensor or layer names that become the outputs, in this order.
            name: new name of the function.
        Raises UsageError for names and shapes that the file does not have, and what `load_module` raises.
        """
        module = load_module(model_path, weights_path)
        if not module.functions:
            raise FileFormatError("it holds no function", file=model_path)
        function = module.main
        _need_shapes(function, shapes, model_path)
        if outputs is not None:
            known = _named_values(function)
            missing = [output for output in outputs if output not in known]
            if missing:
                raise UsageError(f"no tensor or layer is called '{missing[0]}'", file=model_path)
            function.set_outputs([known[output] for output in outputs], list(outputs))
            erase_dead(function)
        function.name = name or function.name
        return module


def _need_shapes(function: Function, shapes: Shapes, path: StrPath) -> None:
    if shapes is None:
        return
    given = dict(shapes) if isinstance(shapes, Mapping) else dict(zip(function.input_names, shapes))
    have = {name: argument.shape for name, argument in zip(function.input_names, function.arguments)}
    for name, shape in given.items():
        if have.get(name) != tuple(shape):
            texts = ", ".join(f"{known}={list(dims)}" for known, dims in have.items()) or "none"
            raise UsageError(
                f"input '{name}' of shape {list(shape)} does not fit; inputs: {texts}",
                file=path,
                remedy="shapes of IR files are fixed; give them when the source model is read",
            )
    if not isinstance(shapes, Mapping) and len(shapes) > len(have):
        raise UsageError(f"{len(shapes)} shapes for {len(have)} inputs", file=path)


def _named_values(function: Function) -> dict[str, Value]:
    """Values by layer, tensor, input and output name; later kinds in this list win, as they are more exact."""
    layers: dict[str, Value] = {}
    tensors: dict[str, Value] = {}
    for op in function.ops[:-1]:
        if op.name == WEIGHT or not op.results:
            continue
        for layer in op.location:
            layers[layer] = op.results[0]
        names = op.attributes.get(TENSOR_NAME, ())
        for tensor, value in zip((names,) if isinstance(names, str) else names, op.results):
            tensors[tensor] = value
    outside = dict(zip(function.input_names, function.arguments))
    return {**layers, **tensors, **outside, **dict(zip(function.output_names, function.returned))}


FRONTEND = MlirFrontend()
