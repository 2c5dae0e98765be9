"""What some releases of ONNX Runtime, the reference of these tests, get wrong. Python 3.10 gets none after 1.23.

Each fault was measured on single nodes: releases before the named one differ from later ones and from the ONNX
definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LAYER_NORM_OF_ONE = (1, 24)
_PADDING_COUNTED = (1, 25)
_ROUNDED_UP_WINDOWS_COUNTED = (1, 29)


def runtime_version() -> tuple[int, ...] | None:
    """Major and minor version of the installed ONNX Runtime, None without one."""
    try:
        import onnxruntime
    except ImportError:
        return None
    return tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])


def refuses_layer_norm_of_one() -> bool:
    """Before 1.24 LayerNormalization over a single element (its result is the bias) is an invalid argument."""
    return _older(_LAYER_NORM_OF_ONE)


def miscounts_padding(opset: int, attributes: Mapping[str, Any]) -> bool:
    """Whether AveragePool with count_include_pad divides by another number than the definition says.

    Opset 19 and up, before 1.25: where there is padding, also that of auto_pad. Earlier opsets, before 1.29: with
    ceil_mode, windows that reach beyond the padding count as whole.
    """
    if opset < 19:
        return bool(attributes.get("ceil_mode")) and _older(_ROUNDED_UP_WINDOWS_COUNTED)
    padded = any(attributes.get("pads", ())) or attributes.get("auto_pad") in ("SAME_UPPER", "SAME_LOWER")
    return padded and _older(_PADDING_COUNTED)


def _older(release: tuple[int, int]) -> bool:
    version = runtime_version()
    return version is not None and version < release
