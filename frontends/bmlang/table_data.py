"""Rows of the operators that arrange, select, scale, sort and make data, and of vision and custom ones."""

from __future__ import annotations

from bmcompiler.frontends.bmlang.rows import row, rows

_F1 = "F32 -> F32"
_ANY1, _ANY8 = "t:F32|I32|Q -> t:F32|I32|Q", "t:F32|I32|Q8 -> t:F32|I32|Q8"
_UNARY = "T tensor_i, O tensor_o"
_LENGTH = "its length depends on values, which the chip's instructions do not look at"
_ORDER = "its order depends on values, which the chip's instructions do not look at"
_TILE_LOCAL = "reps[1] == 1"


def _with(parameters: int, typing: str) -> str:
    """A typing of one tensor with so many INT32 tensors of parameters behind it."""
    ins, outs = typing.split(" -> ")
    return f"{ins}{' I32' * parameters} -> {outs}"


ARRANGE = rows(
    "Data Arrange Operator",
    row(
        "permute",
        f"{_UNARY}, ints order",
        "t:F32|I32|Q8 -> t:F32|I32|Q8",
        _ANY1,
        "G",
        "axis d of the result is axis order[d] of x",
        broadcast="any",
    ),
    row("tile", f"{_UNARY}, ints reps", _F1, _ANY1, _TILE_LOCAL, "x repeated reps[d] times along axis d"),
    row(
        "tile_v2",
        "T tensor_i, T reps, O tensor_o",
        _with(1, _F1),
        _with(1, _ANY1),
        "G",
        "tile with a tensor of repetitions",
        broadcast="any",
        todo=True,
    ),
    row("broadcast", f"{_UNARY}, ints times", _F1, _ANY1, _TILE_LOCAL, "x repeated times[d] times along axis d"),
    row(
        "extract",
        f"{_UNARY}, ints start, ints end, ints stride",
        _F1,
        _ANY1,
        "axis 1 is taken whole",
        "elements start, start + stride, ... below end of every axis",
    ),
    row(
        "extract_v2",
        "T tensor_i, T start, T end, T stride, O tensor_o",
        _with(3, _F1),
        _with(3, _ANY1),
        "G",
        "extract with tensors of parameters",
        broadcast="any",
    ),
    row(
        "interleave",
        "T tensor_i0, T tensor_i1, O tensor_o, int axis, int step",
        "F32 F32 -> F32",
        "t:F32|I32|Q8 t:F32|I32|Q8 -> t:F32|I32|Q8",
        "G",
        "blocks of step elements of a and b in turn, along axis",
    ),
    row(
        "concat",
        "Ts tensor_i, O tensor_o, int axis",
        "F32* -> F32",
        "t:F32|I32|Q* -> t:F32|I32|Q",
        "axis is not 1; BM1684: nor 0 of 8- or 16-bit elements",
        "the tensors one after the other along axis",
        broadcast="any",
    ),
    row(
        "split",
        "T tensor_i, Os tensor_o, int axis, int num, ints size={}",
        "F32 -> F32*",
        "t:F32|I32|Q -> t:F32|I32|Q*",
        "G",
        "num pieces along axis, of the given sizes or equal ones",
    ),
    row(
        "pad",
        f"{_UNARY}, S pad_val, ints paddings, PadType pad_mode=PAD_CONSTANT",
        "F32 any -> F32",
        "t:F32|I32|Q any -> t:F32|I32|Q",
        "paddings[0..3] == 0",
        "elements before and after each axis, as pad_mode says",
    ),
    row(
        "pad_v2",
        "T tensor_i, T paddings, O tensor_o, S pad_val, PadType pad_mode=PAD_CONSTANT",
        "F32 I32 any -> F32",
        "t:F32|I32|Q I32 any -> t:F32|I32|Q",
        "G",
        "pad with a tensor of paddings",
        broadcast="any",
    ),
    row(
        "space_to_batch",
        f"{_UNARY}, ints block_size, ints pad",
        _F1,
        _ANY8,
        "G",
        "pixels of block_size[0] x block_size[1] phases as images of their own, after zero padding",
    ),
    row(
        "space_to_batch_v2",
        "T tensor_i, T block_size, T pad, O tensor_o",
        _with(2, _F1),
        _with(2, _ANY8),
        "G",
        "space_to_batch with tensors of parameters",
        broadcast="any",
        todo=True,
    ),
    row(
        "batch_to_space",
        f"{_UNARY}, ints block_size, ints crop_size",
        _F1,
        _ANY8,
        "G",
        "images as phases of pixels, then cropped: the way back of space_to_batch",
    ),
    row(
        "batch_to_space_v2",
        "T tensor_i, T block_size, T crop_size, O tensor_o",
        _with(2, _F1),
        _with(2, _ANY8),
        "G",
        "batch_to_space with tensors of parameters",
        broadcast="any",
        todo=True,
    ),
)

_F8 = "t:F32|Q8"
SELECT = rows(
    "Select Operator",
    row(
        "condition_select",
        "T tensor_cond, T tensor_sel0, T tensor_sel1, O tensor_o",
        "F32 F32 F32 -> F32",
        f"F32|Q8 {_F8} {_F8} -> {_F8}",
        "L",
        "sel0 where cond > 0, else sel1",
        coeff="tensor_sel0, tensor_sel1",
        broadcast="any",
    ),
    row(
        "select",
        "T tensor_a, T tensor_b, T tensor_c, T tensor_d, O tensor_o, SelectType select_type",
        "F32 F32 F32 F32 -> F32",
        f"a:F32|Q8 a:F32|Q8 {_F8} {_F8} -> {_F8}",
        "L",
        "c where a > b (or a >= b), else d",
        coeff="tensor_a, tensor_b, tensor_c, tensor_d",
        broadcast="any",
    ),
    row(
        "masked_select",
        "T tensor_i, T mask, O tensor_o",
        "F32 F32 -> F32",
        "t:F32|I32 F32|I32 -> t:F32|I32",
        "G",
        "the elements whose mask is not 0, one after the other",
        broadcast="leading",
        host=_LENGTH,
    ),
    row(
        "index_select",
        "T tensor_i, int dim, T index, O tensor_o",
        "F32 I32 -> F32",
        "t:F32|I32 I32 -> t:F32|I32",
        "G",
        "the slices of axis dim that index names",
        broadcast="any",
    ),
    row(
        "where",
        _UNARY,
        "F32 -> I32",
        "F32 -> I32",
        "G",
        "the places of elements that are not 0, one per row",
        host=_LENGTH,
    ),
    row(
        "lut",
        "T tensor_i, T table, O tensor_o",
        "",
        "Q8 t:Q8|F32 -> t:Q8|F32",
        "L",
        "table[x & 255]",
        coeff="tensor_i, table",
        broadcast="any",
    ),
)

SCALING = rows(
    "Up/Down Scaling Operator",
    row(
        "pool",
        f"{_UNARY}, PoolParam pool_param",
        _F1,
        "t:F32|Q8 -> t:F32|Q8",
        "L",
        "the largest value or the mean of each window",
    ),
    row("upsample", f"{_UNARY}, int scale", _F1, "t:F32|Q8 -> t:F32|Q8", "L", "each pixel scale x scale times"),
    row(
        "reduce",
        f"{_UNARY}, ReduceParam reduce_param",
        _F1,
        "t:F32|Q8 -> t:F32|Q8",
        "the type is FLOAT32",
        "mean, sum, largest, smallest or product over axes",
    ),
)

SORT = rows(
    "Sort Operator",
    row(
        "arg",
        f"{_UNARY}, ArgParam arg_param",
        "F32 -> I32; F32 -> F32",
        "F32 -> I32; F32 -> F32; Q8 -> I32",
        "axis > 1",
        "the index of the first largest (or smallest) element along an axis",
    ),
    row(
        "topk",
        "T tensor_i, O tensor_val, O tensor_idx, TopkParam param",
        "F32 -> F32 I32",
        "F32 -> F32 I32",
        "G",
        "the k largest (or smallest) elements along an axis in order, and their indices",
        host=_ORDER,
    ),
    row(
        "sort",
        "T tensor_i, O tensor_o, O index_o, int dim=-1, bool stable=false, bool descending=false",
        "F32 -> F32 I32",
        "F32 -> F32 I32",
        "G",
        "the elements along an axis in order, and their indices; descending: the largest first",
        host=_ORDER,
    ),
    row(
        "argsort",
        "T tensor_i, O index_o, int dim=-1, bool stable=false, bool descending=false",
        "F32 -> I32; F32 -> F32",
        "F32 -> I32; F32 -> F32",
        "G",
        "the indices of the elements along an axis in order",
        host=_ORDER,
    ),
)

SHAPE = rows(
    "Shape About Operator",
    row("squeeze", f"{_UNARY}, ints axis={{}}", _F1, _ANY1, "G", "without the named axes of size 1, or all of them"),
    row("expand_dims", f"{_UNARY}, ExpandDimsParam param", _F1, _ANY1, "G", "with ndims axes of size 1 at an axis"),
    row("reshape", f"{_UNARY}, ints reshape_param", _F1, _ANY1, "G", "another shape; 0 keeps a size, -1 is inferred"),
    row(
        "reshape_v2",
        "T tensor_i, T shape_info, O tensor_o",
        _with(1, _F1),
        _with(1, _ANY1),
        "G",
        "reshape with a tensor of sizes",
        broadcast="any",
        printed_name="reshape",
    ),
    row(
        "shape_fetch",
        f"{_UNARY}, ShapeFetchParam param",
        "F32 -> I32",
        "F32|I32|Q -> I32",
        "G",
        "some sizes of the shape of x",
    ),
)

GENERATE = rows(
    "Data Generate Operator",
    row("constdata", "O tensor", "-> F32", "-> F32|I32|Q", "G", "makes a tensor with data a constant"),
    row(
        "number_like",
        "T tensor_like, S scalar_i, O tensor_o",
        "F32 F32 -> F32",
        "F32|I32|Q t:F32|I32|Q -> t:F32|I32|Q",
        "G",
        "the scalar in the shape of tensor_like",
    ),
    row(
        "sequence_gen",
        "T shape_tensor, O tensor_o",
        "",
        "I32 -> I32; I32 -> F32",
        "G",
        "0, 1, 2, ... in the given shape",
        broadcast="any",
    ),
)

VISION = rows(
    "Vision Operator",
    row(
        "nms",
        "T boxes, T scores, S threshold, O tensor_o, bool stable=false",
        "F32 F32 F32 -> I32",
        "F32 F32 F32 -> I32",
        "G",
        "indices of boxes by falling score, without those that overlap a better one",
        host=_LENGTH,
        broadcast="any",
    ),
    row(
        "nms_v2",
        "T boxes, T scores, S iou_threshold, S score_threshold, uint max_output_size, O tensor_o, bool stable=false",
        "F32 F32 F32 F32 -> I32",
        "F32 F32 F32 F32 -> I32",
        "G",
        "nms of the boxes with scores from score_threshold on, at most max_output_size",
        host=_LENGTH,
        broadcast="any",
        todo=True,
        printed_name="nms",
    ),
)

CUSTOM = rows(
    "Custom Operator",
    row(
        "customed_ops",
        "Ts tensor_i, Os tensor_o, UserCpuParam param, int param_size=0",
        "F32* -> F32*",
        "F32|I32|Q* -> F32|I32|Q*",
        "G",
        "a layer of the user's own on the host, or of a plugin's on the device",
        host="it is the user's own function, unless a plugin has a kernel for it",
        broadcast="any",
    ),
)

DATA = (*ARRANGE, *SELECT, *SCALING, *SORT, *SHAPE, *GENERATE, *VISION, *CUSTOM)
