"""The vendor's BMNet library under its own names: builder, layers, ops and instruction classes.

    from bmcompiler.bmnet import BM_CHIP_BM1880, CaffeBuilder, CustomizedCaffeLayer, CustomizedTensorFixedInst

They are thin views of the compiler's own IR, plugin tables and driver. docs/bmnet.md says what its documents
leave open. Everything is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bmcompiler.bmnet.builder import (
        BM_CHIP_BM1880,
        BM_OPT_LAYER_GROUP,
        BM_OPT_LAYER_GROUP_WITH_WEIG,
        BM_OPT_LAYER_GROUP_WITH_WEIGHT,
        CHIP_VER,
        OPT_NONE,
        Builder,
        CaffeBuilder,
    )
    from bmcompiler.bmnet.inst import LayerCalibrationParameter, TensorFixedInst, TensorInst
    from bmcompiler.bmnet.layer import CaffeLayer, CustomizedCaffeLayer, Layer
    from bmcompiler.bmnet.tensor_op import TensorOp, TensorShape, TGCustomizedParameter

__all__ = [
    "BM_CHIP_BM1880", "BM_OPT_LAYER_GROUP", "BM_OPT_LAYER_GROUP_WITH_WEIG", "BM_OPT_LAYER_GROUP_WITH_WEIGHT",
    "CHIP_VER", "OPT_NONE", "Builder", "CaffeBuilder", "CaffeLayer", "CustomizedCaffeLayer",
    "CustomizedTensorFixedInst", "Layer", "LayerCalibrationParameter", "TGCustomizedParameter", "TensorFixedInst",
    "TensorInst", "TensorOp", "TensorShape",
]  # fmt: skip

_HOME = {
    "TensorOp": "tensor_op",
    "TensorShape": "tensor_op",
    "TGCustomizedParameter": "tensor_op",
    "Layer": "layer",
    "CaffeLayer": "layer",
    "CustomizedCaffeLayer": "layer",
    "TensorInst": "inst",
    "TensorFixedInst": "inst",
    "LayerCalibrationParameter": "inst",
}


def __getattr__(name: str) -> Any:
    if name == "CustomizedTensorFixedInst":
        from bmcompiler.bmnet.builder import BM_CHIP_BM1880
        from bmcompiler.target import find_target

        return find_target(BM_CHIP_BM1880.value).custom_inst
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_HOME.get(name, 'builder')}"), name)
