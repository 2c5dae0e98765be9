"""The fields of Caffe's LayerParameter for C, by paths such as "input_param.shape[0].dim"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from bmcompiler.bmnet.layer import CaffeLayer
from bmcompiler.errors import UsageError

_PART = re.compile(r"(\w+)(?:\[(\d{1,9})\])?")


def values_of(layer: CaffeLayer, path: str, stated: bool = False) -> Sequence[Any]:
    """The values of a field: those of the file, else its default unless only what is `stated` counts.

    Fields that the schema does not know are found where the net's text has them.

    Raises UsageError for a field that neither has.
    """
    parts = [_PART.fullmatch(part) for part in path.split(".")]
    message: Any = layer.layer_
    found: Sequence[Any] = ()
    for number, part in enumerate(parts):
        if part is None:
            raise UsageError(f"'{path}' is no path of a field", remedy="write names with dots, as in elu_param.alpha")
        name, index = part.groups()
        if message is None or name not in message.DESCRIPTOR.fields_by_name:
            return _unknown(layer, path)
        found = _values(message, name, stated)
        if number < len(parts) - 1:
            message = _message(found, message, name, int(index or 0), stated)
        elif index is not None:
            found = found[int(index) : int(index) + 1]
    return found


def _values(message: Any, name: str, stated: bool) -> Sequence[Any]:
    value = getattr(message, name)
    if _repeated(message, name):
        return list(value)
    return [value] if not stated or message.HasField(name) else []


def _repeated(message: Any, name: str) -> bool:
    return hasattr(getattr(message, name), "extend")


def _message(found: Sequence[Any], message: Any, name: str, index: int, stated: bool) -> Any:
    """The message that the path goes on in; a default one where the file has none."""
    if not found and stated and not _repeated(message, name):
        return getattr(message, name)
    if index >= len(found):
        raise UsageError(f"value {index} of field '{name}' does not exist, there are {len(found)}")
    return found[index]


def _unknown(layer: CaffeLayer, path: str) -> Sequence[Any]:
    trees: list[Any] = [layer.extra]
    for name in path.split("."):
        tree = next((one for one in trees if isinstance(one, dict)), {})
        trees = tree.get(name, [])
    if not trees:
        raise UsageError(f"LayerParameter has no field '{path}', and the layer's text neither")
    return trees
