"""libbmnet.so: BMNet for C, and the headers of its C++ classes."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from bmcompiler.bmnet import builder, c_functions
from bmcompiler.bmnet.c_handles import BMNET_C, CALLBACKS
from bmcompiler.capi.api import declared
from bmcompiler.capi.buffers import text
from bmcompiler.capi.library import HANDLES, CLibrary, Read, Write
from bmcompiler.plugins.registry import lookup

_CHIPS = "".join(f"#define {chip.name} {number}\n" for number, chip in c_functions.CHIPS.items())
_LEVELS = "".join(
    f"#define {name} {getattr(builder, name)}\n"
    for name in ("OPT_NONE", "BM_OPT_LAYER_GROUP", "BM_OPT_LAYER_GROUP_WITH_WEIGHT", "BM_OPT_LAYER_GROUP_WITH_WEIG")
)
PREAMBLE = f"""/* Chips, and what a build optimises; names of newer headers stand for the same. */
{_CHIPS}{_LEVELS}#define BM_OPT_NONE OPT_NONE
#define BM_OPT_LAYER_GROUP_WITH_GMEM_RECYCLE BM_OPT_LAYER_GROUP_WITH_WEIGHT
#define BM_OPT_LAYER_GROUP_WITH_WEIGHT_OPT BM_OPT_LAYER_GROUP_WITH_WEIGHT
typedef struct bmnet_builder *bmnet_builder_t;
/* Known while the callback runs that gets them. */
typedef struct bmnet_op *bmnet_op_t;
typedef struct bmnet_layer *bmnet_layer_t;
/* Functions of the program. They return 0, or anything else for failure; where a call on `op` was refused, they fail
   whatever they return. */
typedef int (*bmnet_layer_callback_t)(void *user, bmnet_op_t op, bmnet_layer_t layer);
typedef int (*bmnet_inst_callback_t)(void *user, bmnet_op_t op, bmk1880_context_t *kernel);
typedef int (*bmnet_cpu_callback_t)(void *user, bmnet_op_t op);
"""
_FORWARDS = (
    "builder/Builder", "builder/CaffeBuilder", "frontend/Layer", "frontend/caffe/CaffeBuilder",
    "frontend/caffe/CaffeFrontendContext", "frontend/caffe/CaffeLayer", "frontend/caffe/CustomizedCaffeLayer",
    "backend/TensorFixedInst", "backend/TensorInst", "targets/Target", "targets/plat-bm188x/BM188xBackendContext",
    "targets/plat-bm188x/CustomizedTensorFixedInst", "utils/common",
)  # fmt: skip
"""The vendor's headers whose names stand for ours."""


def _headers() -> Mapping[str, str]:
    """The C++ classes, those of Caffe's parameters, and the vendor's names of headers."""
    from bmcompiler.bmnet.c_parameters import context_methods, parameter_classes

    schema = lookup("bmcompiler.frontends", "caffe", "frontend").layer_schema()
    kernel: CLibrary = lookup("bmcompiler.c_libraries", "bmkernel", "C library")
    forwards = {f"bmnet/{name}.hpp": f'#include "{"../" * (name.count("/") + 1)}bmnet.hpp"\n' for name in _FORWARDS}
    classes = declared(__file__, "c_classes.hpp").replace("/* METHODS */\n", context_methods(kernel))
    return {"bmnet.hpp": classes, "bmnet_caffe.hpp": parameter_classes(schema), **forwards}


def _number(bits: int) -> int | None:
    return bits or None


def _put(address: int, value: Any) -> None:
    ctypes.c_uint64.from_address(address).value = value


_READ: dict[str, Read] = {
    **dict.fromkeys(("builder_t", "op_t", "layer_t"), HANDLES.read),
    **dict.fromkeys((*CALLBACKS, "user_t"), _number),
    **dict.fromkeys(("const char *", "name_t", "path_t"), text),
}
_WRITE: dict[str, Write] = {
    "builder_t": HANDLES.write,
    **dict.fromkeys(("text_t", "float *", "const float *"), _put),
}

LIBRARY: CLibrary = CLibrary(
    "bmnet",
    BMNET_C,
    PREAMBLE,
    {
        **{name: f"bmnet_{name}" for name in ("builder_t", "builder_t *", "op_t", "layer_t", *CALLBACKS)},
        **dict.fromkeys(("name_t", "path_t", "text_t"), "const char *"),
        "user_t": "void *",
        "count_t": "int",
    },
    {"bmerr_t": "BM_ERR_FAILURE", "count_t": "-1"},
    lambda name: getattr(c_functions, name),
    needs=("bmkernel",),
    includes=('"bmkernel.h"',),
    numbers={"count_t": ctypes.c_int32, "double": ctypes.c_double},
    read=_READ,
    write=_WRITE,
    extras=_headers,
)
