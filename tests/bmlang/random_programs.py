"""Random BMLang programs: a few inputs, then operators on anything that exists, with random shapes and attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from bmlang_samples import MODES, values

from bmcompiler import bmlang
from bmcompiler.bmlang import (
    FLOAT32,
    INT16,
    INT32,
    TABLE,
    ActiveType,
    ArgParam,
    ConvParam,
    DataType,
    MatrixMulParam,
    PoolParam,
    PoolType,
    ReduceMethodType,
    ReduceParam,
    Scalar,
    SelectType,
    Tensor,
)
from bmcompiler.frontends.bmlang.numbers import numpy_type
from bmcompiler.frontends.bmlang.typings import ALL, HALVES, Q8, Q16, accepted

MOST = 20_000
"""Elements of a tensor of a program."""
INTEGERS = (*Q8, *Q16, INT32)
FLOATS = (FLOAT32, *HALVES)
Step = Callable[["Writer"], "Tensor | None"]
STEPS: list[Step] = []


def step(function: Step) -> Step:
    STEPS.append(function)
    return function


class Writer:
    """Writes one program; `reals` allows floats, or names the types to take."""

    def __init__(self, seed: int, reals: bool | tuple[DataType, ...]) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtypes = reals if isinstance(reals, tuple) else ALL if reals else INTEGERS
        self.made: list[Tensor] = []
        self.log: list[str] = []
        for _ in range(int(self.rng.integers(1, 4))):
            sizes = (self.upto(3), int(self.rng.choice([1, 3, 8, 33, 65])), self.upto(9), self.upto(9))
            self.made.append(self.tensor(sizes, self.pick(self.dtypes)))

    def upto(self, most: int) -> int:
        return int(self.rng.integers(1, most + 1))

    def pick(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def tensor(self, shape: tuple[int, ...], dtype: DataType, constant: bool = False) -> Tensor:
        made = Tensor(data=values(self.rng, shape, dtype))
        made.constant = constant
        return made

    def any(self, *dtypes: DataType, rank: int = 0) -> Tensor | None:
        """A tensor of the program with one of these types and so many axes."""
        fits = [t for t in self.made if t.dtype in dtypes and (not rank or len(t.shape or ()) == rank)]
        return self.pick(fits) if fits else None

    def result(self, name: str, ins: list[DataType], variant: str = "") -> DataType | None:
        """A type that the operator may give."""
        typing = TABLE[name].typing(bmlang.current().chip)
        fits = [dtype for dtype in self.dtypes if accepted(typing, variant, tuple(ins), (dtype,), False)]
        return self.pick(fits) if fits else None

    def program(self, steps: int) -> list[Tensor]:
        """The last tensors of a program of so many operators."""
        while len(self.log) < steps:
            function = self.pick(STEPS)
            found = function(self)
            if found is not None and found.shape is not None and 0 < np.prod(found.shape) <= MOST:
                self.log.append(f"{function.__name__} {found.dtype.name if found.dtype else ''} {list(found.shape)}")
                self.made.append(found)
        return self.made[-3:]


def call(name: str, *arguments: Any, dtype: Any = None) -> Tensor:
    found: Tensor = getattr(bmlang, name)(*arguments, dtype=dtype)
    return found


# -- element-wise ------------------------------------------------------------------------------------------------------
_KINDS = {name: [p.kind for p in row.parameters] for name, row in TABLE.items() if row.local == "L"}
_TWO = [name for name, kinds in _KINDS.items() if kinds == ["T", "T", "O"]]
_ONE = ["ceil", "floor", "sin", "cos"]
_SCALAR = [
    n for n, row in TABLE.items() if sorted(p.kind for p in row.parameters) == ["O", "S", "T"] and row.local == "L"
]


def _second(w: Writer, name: str, a: Tensor) -> Tensor:
    """A second operand: one of the program, or a constant or input that may broadcast."""
    shape = a.shape or ()
    if name == "lut":
        return w.tensor((256,), w.pick([*Q8, *[d for d in w.dtypes if d in FLOATS]]), constant=True)
    same = [t for t in w.made if t.shape == shape]
    if w.rng.random() < 0.5:
        return w.pick(same)  # type: ignore[no-any-return]
    row = TABLE[name]
    sizes = tuple(1 if row.broadcast and w.rng.random() < 0.4 else size for size in shape)
    return w.tensor(sizes, w.pick(w.dtypes), constant=bool(row.coeff) and w.rng.random() < 0.5)


@step
def two_tensors(w: Writer) -> Tensor | None:
    name = w.pick(_TWO)
    a = w.pick(w.made)
    b = _second(w, name, a)
    if name.endswith("shift") and "num" in TABLE[name].signature and b.dtype in (INT16, INT32):
        b = Tensor(data=w.rng.integers(-20, 20, b.shape).astype(numpy_type(b.dtype)))
    dtype = w.result(name, [a.dtype, b.dtype])
    w_ok = dtype is not None and (not b.constant or not a.constant)
    return call(name, a, b, dtype=dtype) if w_ok else None


@step
def shifted(w: Writer) -> Tensor | None:
    name = w.pick(["mul_shift", "add_shift", "sub_shift"])
    a = w.pick(w.made)
    b = _second(w, name, a)
    dtype = w.result(name, [a.dtype, b.dtype])
    return None if dtype is None else call(name, a, b, int(w.rng.integers(0, 32)), dtype=dtype)


@step
def with_scalar(w: Writer) -> Tensor | None:
    name, x = w.pick(_SCALAR), w.pick(w.made)
    kind = w.pick(w.dtypes)
    number = Scalar(values(w.rng, (1,), kind)[0], kind)
    order = [kind, x.dtype] if name == "rsubs" else [x.dtype, kind]
    dtype = w.result(name, order)
    if dtype is None:
        return None
    return call(name, number, x, dtype=dtype) if name == "rsubs" else call(name, x, number, dtype=dtype)


@step
def function(w: Writer) -> Tensor | None:
    kind, x = w.pick(list(ActiveType)[:-1]), w.pick(w.made)
    dtype = w.result("active", [x.dtype], kind.name)
    return None if dtype is None else call("active", x, kind, dtype=dtype)


@step
def function_by_name(w: Writer) -> Tensor | None:
    x = w.any(*FLOATS)
    return None if x is None else call(w.pick(_ONE), x)


@step
def converted(w: Writer) -> Tensor | None:
    x = w.pick(w.made)
    dtype = w.result("cast", [x.dtype])
    return None if dtype is None else call("cast", x, dtype=dtype)


@step
def strided(w: Writer) -> Tensor | None:
    name = w.pick([n for n in TABLE if n.startswith("stride_")])
    a = w.pick(w.made)
    shape = a.shape or ()
    stride = [w.upto(2) for _ in shape]
    more = [stride, [w.upto(size) - 1 for size in shape]] if name.endswith("_offset") else [stride]
    if "cpy" in name:
        return None if w.result(name, [a.dtype]) is None else call(name, a, *more)
    b = _second(w, name, a)
    dtype = w.result(name, [a.dtype, b.dtype])
    return None if dtype is None else call(name, a, b, *more, dtype=dtype)


# -- products ----------------------------------------------------------------------------------------------------------
def _mode(w: Writer, ins: list[DataType], name: str) -> tuple[str, dict[str, Any], DataType] | None:
    variant = w.pick(list(MODES))
    dtype = w.result(name, ins, variant)
    if dtype is None:
        return None
    fields: dict[str, Any] = {"scale": float(2.0 ** -w.rng.uniform(-1, 14)), "mode": MODES[variant]}
    if variant == "asymmetric" and ins[0].is_integer:
        fields |= dict(zip(("left_zero_point", "right_zero_point", "output_zero_point"), w.rng.integers(0, 90, 3)))
    return variant, fields, dtype


@step
def convolution(w: Writer) -> Tensor | None:
    name = w.pick(["conv", "conv", "deconv"])
    x = w.any(*FLOATS, *Q8, rank=4)
    if x is None or x.shape is None:
        return None
    kind = x.dtype if x.dtype in FLOATS else w.pick(Q8)
    found = _mode(w, [x.dtype, kind], name)
    (_, channels, height, width), kernel = x.shape, (w.upto(3), w.upto(3))
    groups = w.pick([1, 1, channels])
    if found is None or (name == "deconv" and found[1]["mode"] and x.dtype not in FLOATS):
        return None
    out = channels if groups > 1 else w.upto(20)
    weight = (out, channels // groups, *kernel) if name == "conv" else (channels, out // groups, *kernel)
    pads = [w.upto(4) - 1 for _ in range(4)]
    dilations = [w.upto(2), w.upto(2)]
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel)]
    if height + pads[0] + pads[1] < reach[0] or width + pads[2] + pads[3] < reach[1]:
        return None
    if name == "deconv":
        pads = [min(pad, (r - 1) // 2) for pad, r in zip(pads, (reach[0], reach[0], reach[1], reach[1]))]
    param = ConvParam(*dilations, *pads, w.upto(3), w.upto(3), groups, **found[1])
    inputs = [x, w.tensor(weight, kind, constant=True)]
    if w.rng.random() < 0.5:
        inputs.append(w.tensor((1, out, 1, 1), kind if kind in FLOATS else INT16, constant=True))
    return call(name, inputs, param, dtype=found[2])


@step
def matrix_product(w: Writer) -> Tensor | None:
    x = w.any(*FLOATS, *Q8)
    if x is None or not x.shape:
        return None
    kind = x.dtype if x.dtype in FLOATS else w.pick(Q8)
    found = _mode(w, [x.dtype, kind], "matrix_mul")
    if found is None:
        return None
    rows = bmlang.reshape(x, [x.shape[0], -1])
    right = w.tensor((rows.shape[1], w.upto(20)), kind, constant=True)
    return call("matrix_mul", [rows, right], MatrixMulParam(**found[1]), dtype=found[2])


# -- windows, reductions -----------------------------------------------------------------------------------------------
@step
def pooled(w: Writer) -> Tensor | None:
    x = w.any(*FLOATS, *Q8, rank=4)
    if x is None or x.shape is None:
        return None
    kernel = [w.upto(min(3, size)) for size in x.shape[2:]]
    pads = [w.upto(k) - 1 for k in kernel]
    kind = w.pick([PoolType.MAX, PoolType.AVE])
    ends = bool(w.rng.random() < 0.3)
    param = PoolParam(w.upto(3), w.upto(3), *pads, 0, 0, *kernel, kind, bool(w.rng.random() < 0.2), ends, True, ends)
    return call("pool", x, param)


@step
def enlarged(w: Writer) -> Tensor | None:
    x = w.any(*FLOATS, *Q8, rank=4)
    return None if x is None else call("upsample", x, w.upto(3))


@step
def reduced(w: Writer) -> Tensor | None:
    x = w.any(*FLOATS, *Q8)
    if x is None or not x.shape:
        return None
    axes = w.rng.permutation(len(x.shape))[: w.upto(len(x.shape))].tolist()
    return call("reduce", x, ReduceParam(w.pick(list(ReduceMethodType)), axes, None, bool(w.rng.random() < 0.7)))


@step
def best(w: Writer) -> Tensor | None:
    x = w.any(*FLOATS, *Q8)
    return None if x is None or not x.shape else call("arg", x, ArgParam(w.upto(len(x.shape)) - 1, w.upto(2) - 1))


# -- moving and choosing -----------------------------------------------------------------------------------------------
@step
def moved(w: Writer) -> Tensor | None:
    x = w.pick(w.made)
    shape = x.shape or ()
    if not shape:
        return None
    axis = w.upto(len(shape)) - 1
    choice = w.pick(["permute", "tile", "extract", "pad", "interleave", "concat", "reshape", "split", "squeeze"])
    if choice == "permute":
        return call(choice, x, w.rng.permutation(len(shape)))
    if choice == "tile":
        return call(choice, x, [w.upto(2) for _ in shape])
    if choice == "extract":
        starts = [w.upto(size) - 1 for size in shape]
        ends = [int(w.rng.integers(start + 1, size + 1)) for start, size in zip(starts, shape)]
        return call(choice, x, starts, ends, [w.upto(2) for _ in shape])
    if choice == "pad":
        mode = w.upto(4) - 1
        most = [3 if mode == 0 else min(size, 3) for size in shape]
        return call(choice, x, 3, [w.upto(size) - 1 for size in most for _ in "ab"], mode)
    if choice == "interleave":
        return None if x.dtype in Q16 else call(choice, x, w.tensor(shape, x.dtype), axis, 1)
    if choice == "concat":
        return call(choice, [x, w.tensor(shape, x.dtype), x][: w.upto(3)], axis)
    if choice == "split":
        return None if shape[axis] < 2 else bmlang.split(x, axis, 2, [1, shape[axis] - 1])[w.upto(2) - 1]
    return call("reshape", x, [-1, shape[-1]]) if choice == "reshape" else call(choice, x)


@step
def blocks(w: Writer) -> Tensor | None:
    x = w.any(*FLOATS, INT32, *Q8, rank=4)
    if x is None or x.shape is None:
        return None
    pads = [(-x.shape[2]) % 2, 0, 0, (-x.shape[3]) % 2]
    y = call("space_to_batch", x, [2, 2], pads)
    return y if w.rng.random() < 0.5 else call("batch_to_space", y, [w.pick([1, 2]), 2], [0, 0, 0, 0])


@step
def chosen(w: Writer) -> Tensor | None:
    a = w.any(*FLOATS, *Q8)
    if a is None or a.shape is None:
        return None
    kind = w.pick([d for d in w.dtypes if d in (*FLOATS, *Q8)])
    c, d = (w.tensor(a.shape, kind) for _ in range(2))
    if w.rng.random() < 0.5:
        return call("condition_select", a, c, d)
    return call(
        "select", a, w.tensor(a.shape, a.dtype), c, d, w.pick([SelectType.GREATER_THAN, SelectType.GREATER_EQUAL])
    )


@step
def picked(w: Writer) -> Tensor | None:
    x = w.any(*FLOATS, INT32)
    if x is None or not x.shape:
        return None
    axis = w.upto(len(x.shape)) - 1
    index = Tensor(data=w.rng.integers(0, x.shape[axis], w.upto(5)).astype(np.int32))
    index.constant = True
    return call("index_select", x, axis, index)
