"""The golden programs of bm1880.md section 16: the kernel calls behind each row of tests/data/bm1880_golden.json.

`build(case)` returns (command buffer, initial global memory, [(result name, global address, size in bytes)]).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_NULL,
    CTRL_RA,
    CTRL_RELU,
    CTRL_TP,
    CTRL_WINOGRAD,
    FMT_I8,
    FMT_U8,
    Bmk1880Context,
    bmk1880_acquire_cmdbuf,
    bmk1880_add_const_param_t,
    bmk1880_add_param_t,
    bmk1880_and_int16_param_t,
    bmk1880_avg_pooling_param_t,
    bmk1880_conv_param_t,
    bmk1880_copy_param_t,
    bmk1880_depthwise_param_t,
    bmk1880_gdma_copy_lmem,
    bmk1880_gdma_load,
    bmk1880_gdma_lrn_shift,
    bmk1880_gdma_store,
    bmk1880_lut_param_t,
    bmk1880_mac_const_param_t,
    bmk1880_mac_param_t,
    bmk1880_matrix_mac_2_param_t,
    bmk1880_matrix_mac_param_t,
    bmk1880_max_param_t,
    bmk1880_max_pooling_param_t,
    bmk1880_mdsum_param_t,
    bmk1880_min_const_param_t,
    bmk1880_min_param_t,
    bmk1880_mul_const_param_t,
    bmk1880_mul_param_t,
    bmk1880_register,
    bmk1880_relu_param_t,
    bmk1880_sub_param_t,
    bmk1880_tl_prealloc,
    bmk1880_tl_prealloc_align,
    bmk1880_tpu_add,
    bmk1880_tpu_add_const,
    bmk1880_tpu_and_int16,
    bmk1880_tpu_avg_pooling,
    bmk1880_tpu_conv,
    bmk1880_tpu_copy,
    bmk1880_tpu_depthwise,
    bmk1880_tpu_lut,
    bmk1880_tpu_mac,
    bmk1880_tpu_mac_const,
    bmk1880_tpu_matrix_mac,
    bmk1880_tpu_matrix_mac_2,
    bmk1880_tpu_max,
    bmk1880_tpu_max_pooling,
    bmk1880_tpu_mdsum,
    bmk1880_tpu_min,
    bmk1880_tpu_min_const,
    bmk1880_tpu_mul,
    bmk1880_tpu_mul_const,
    bmk1880_tpu_relu,
    bmk1880_tpu_sub,
    bmk1880_tpu_winograd,
    bmk1880_tpu_xor_int8,
    bmk1880_winograd_param_t,
    bmk1880_xor_int8_param_t,
    shape_t,
    shape_t2,
    shape_t4,
    tensor_lmem,
)
from bmcompiler.backends.bm1880.bmkernel.tensors import lane_bytes
from bmcompiler.backends.bm1880.chip import align_up

Result = tuple[str, int, int]
Built = tuple[bytes, bytes, list[Result]]

DEFAULT = shape_t4(2, 40, 5, 7)
CASES: dict[str, Callable[[], Built]] = {}


def generated(seed: int, count: int) -> bytes:
    """The byte generator G(seed, n) of section 16."""
    out = bytearray(count)
    for i in range(count):
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        out[i] = seed >> 16 & 255
    return bytes(out)


@dataclass
class Row:
    """Set-up shared by the rows: tensors packed from local address 0, inputs loaded from packed global memory."""

    ctx: Bmk1880Context = field(default_factory=bmk1880_register)
    laddr: int = 0
    gmem: bytearray = field(default_factory=bytearray)
    results: list[Result] = field(default_factory=list)
    seed: int = 1

    def tensor(
        self, shape: shape_t = DEFAULT, fmt: int = FMT_I8, *, aligned: bool = True, load: bool = True
    ) -> tensor_lmem:
        """Describe the next tensor; inputs are loaded when the operation comes (after all were described)."""
        make = bmk1880_tl_prealloc_align if aligned else bmk1880_tl_prealloc
        t = make(self.ctx, self.laddr, shape, fmt)
        self.laddr = align_up(self.laddr + lane_bytes(shape, aligned), 16)
        if load:
            self.load(t)
        return t

    def load(self, t: tensor_lmem, ctrls: int = CTRL_NULL) -> None:
        """Fill the next stretch of global memory and load it."""
        bmk1880_gdma_load(self.ctx, t, self.place(t.shape.elements), ctrls)

    def place(self, size: int) -> int:
        """Generated input bytes at the next 64-aligned global address."""
        at = self.room(size)
        self.gmem[at : at + size] = generated(self.seed, size)
        self.seed += 1
        return at

    def room(self, size: int) -> int:
        """Zeroed bytes at the next 64-aligned global address."""
        at = align_up(len(self.gmem), 64)
        self.gmem.extend(bytes(at + size - len(self.gmem)))
        return at

    def out(self, shape: shape_t = DEFAULT, fmt: int = FMT_I8, *, aligned: bool = True) -> tensor_lmem:
        """Describe a tensor that is not loaded."""
        return self.tensor(shape, fmt, aligned=aligned, load=False)

    def conv_weight(self, ic: int, oc: int, kh: int, kw: int) -> tensor_lmem:
        """Load a convolution weight in its memory order, then describe it by its logical shape."""
        t = self.tensor(shape_t4(1, oc, kh * kw, ic), aligned=False)
        return bmk1880_tl_prealloc(self.ctx, t.address, shape_t4(ic, oc, kh, kw), t.fmt)

    def done(self, **stores: tensor_lmem) -> Built:
        """Store the named results and hand everything over."""
        for name, t in stores.items():
            at = self.room(t.shape.elements)
            bmk1880_gdma_store(self.ctx, t, at, CTRL_NULL)
            self.results.append((name, at, t.shape.elements))
        return bmk1880_acquire_cmdbuf(self.ctx), bytes(self.gmem), self.results


def build(case: str) -> Built:
    """Run the kernel calls of one row."""
    return CASES[case]()


def _case(name: str) -> Callable[[Callable[[], Built]], Callable[[], Built]]:
    def register(make: Callable[[], Built]) -> Callable[[], Built]:
        CASES[name] = make
        return make

    return register


@_case("mul i8 rsh5")
def _mul() -> Built:
    r = Row()
    a, b, o = r.tensor(), r.tensor(), r.out()
    bmk1880_tpu_mul(r.ctx, bmk1880_mul_param_t(None, o, a, b, 5))
    return r.done(o=o)


@_case("mul i8 -> 16-bit rsh0")
def _mul_16() -> Built:
    r = Row()
    a, b, o, oh = r.tensor(), r.tensor(), r.out(), r.out()
    bmk1880_tpu_mul(r.ctx, bmk1880_mul_param_t(oh, o, a, b, 0))
    return r.done(o=o, oh=oh)


def _mul_const(b: int, signed: bool, rshift: int) -> Built:
    r = Row()
    a, o = r.tensor(), r.out()
    bmk1880_tpu_mul_const(r.ctx, bmk1880_mul_const_param_t(None, o, a, b, signed, rshift))
    return r.done(o=o)


CASES["mul_const b=-21 signed rsh3"] = lambda: _mul_const(-21, True, 3)
CASES["mul_const b=235 unsigned rsh8"] = lambda: _mul_const(235, False, 8)


@_case("mac 16->16 lsh3 rsh2 (res = rl,rh in place)")
def _mac_16() -> Built:
    r = Row()
    a, b, rl, rh = (r.tensor() for _ in range(4))
    bmk1880_tpu_mac(r.ctx, bmk1880_mac_param_t(rh, rl, False, a, b, 3, 2))
    return r.done(rl=rl, rh=rh)


@_case("mac 16->8 lsh1 rsh7")
def _mac_8() -> Built:
    r = Row()
    a, b, rl, rh = (r.tensor() for _ in range(4))
    bmk1880_tpu_mac(r.ctx, bmk1880_mac_param_t(rh, rl, True, a, b, 1, 7))
    return r.done(rl=rl)


@_case("mac_const b=62 signed 16->8 lsh0 rsh7")
def _mac_const() -> Built:
    r = Row()
    a, rl, rh = (r.tensor() for _ in range(3))
    bmk1880_tpu_mac_const(r.ctx, bmk1880_mac_const_param_t(rh, rl, True, a, 62, True, 0, 7))
    return r.done(rl=rl)


@_case("add 16+16->16")
def _add_16() -> Built:
    r = Row()
    al, ah, bl, bh, o, oh = *(r.tensor() for _ in range(4)), r.out(), r.out()
    bmk1880_tpu_add(r.ctx, bmk1880_add_param_t(oh, o, ah, al, bh, bl))
    return r.done(o=o, oh=oh)


@_case("add 16+16->8")
def _add_8() -> Built:
    r = Row()
    al, ah, bl, bh, o = *(r.tensor() for _ in range(4)), r.out()
    bmk1880_tpu_add(r.ctx, bmk1880_add_param_t(None, o, ah, al, bh, bl))
    return r.done(o=o)


@_case("sub 16-16->16")
def _sub() -> Built:
    r = Row()
    al, ah, bl, bh, o, oh = *(r.tensor() for _ in range(4)), r.out(), r.out()
    bmk1880_tpu_sub(r.ctx, bmk1880_sub_param_t(oh, o, ah, al, bh, bl))
    return r.done(o=o, oh=oh)


@_case("add_const -1000 signed ->16")
def _add_const() -> Built:
    r = Row()
    al, ah, o, oh = r.tensor(), r.tensor(), r.out(), r.out()
    bmk1880_tpu_add_const(r.ctx, bmk1880_add_const_param_t(oh, o, ah, al, -1000, True))
    return r.done(o=o, oh=oh)


@_case("max i8")
def _max() -> Built:
    r = Row()
    a, b, o = r.tensor(), r.tensor(), r.out()
    bmk1880_tpu_max(r.ctx, bmk1880_max_param_t(o, a, b))
    return r.done(o=o)


@_case("min u8")
def _min() -> Built:
    r = Row()
    a, b, o = r.tensor(fmt=FMT_U8), r.tensor(fmt=FMT_U8), r.out(fmt=FMT_U8)
    bmk1880_tpu_min(r.ctx, bmk1880_min_param_t(o, a, b))
    return r.done(o=o)


@_case("min_const b=0")
def _min_const() -> Built:
    r = Row()
    a, o = r.tensor(), r.out()
    bmk1880_tpu_min_const(r.ctx, bmk1880_min_const_param_t(o, a, 0, True))
    return r.done(o=o)


@_case("relu")
def _relu() -> Built:
    r = Row()
    a, o = r.tensor(), r.out()
    bmk1880_tpu_relu(r.ctx, bmk1880_relu_param_t(o, a))
    return r.done(o=o)


@_case("xor_int8")
def _xor() -> Built:
    r = Row()
    a, b, o = r.tensor(), r.tensor(), r.out()
    bmk1880_tpu_xor_int8(r.ctx, bmk1880_xor_int8_param_t(o, a, b))
    return r.done(o=o)


@_case("and_int16")
def _and() -> Built:
    r = Row()
    al, ah, bl, bh, o, oh = *(r.tensor() for _ in range(4)), r.out(), r.out()
    bmk1880_tpu_and_int16(r.ctx, bmk1880_and_int16_param_t(oh, o, ah, al, bh, bl))
    return r.done(o=o, oh=oh)


@_case("copy")
def _copy() -> Built:
    r = Row()
    a, o = r.tensor(), r.out()
    bmk1880_tpu_copy(r.ctx, bmk1880_copy_param_t(o, a))
    return r.done(o=o)


@_case("mdsum 8-bit (o unaligned (1,40,1,1))")
def _mdsum() -> Built:
    r = Row()
    a, o = r.tensor(), r.out(shape_t4(1, 40, 1, 1), aligned=False)
    bmk1880_tpu_mdsum(r.ctx, bmk1880_mdsum_param_t(None, o, a))
    return r.done(o=o)


@_case("lut (t=(1,32,16,16))")
def _lut() -> Built:
    r = Row()
    a, t, o = r.tensor(), r.tensor(shape_t4(1, 32, 16, 16)), r.out()
    bmk1880_tpu_lut(r.ctx, bmk1880_lut_param_t(o, a, t))
    return r.done(o=o)


@dataclass(frozen=True)
class Conv:
    """A convolution row: input (n, c, h, w), weight (ic, oc, kh, kw), output (h, w), other parameters by name."""

    x: tuple[int, int, int, int]
    w: tuple[int, int, int, int]
    out: tuple[int, int]
    params: dict[str, int]
    bias: bool = False
    fmt: int = FMT_I8

    def __call__(self) -> Built:
        r = Row()
        x = r.tensor(shape_t4(*self.x), self.fmt)
        w = r.conv_weight(*self.w)
        bias = r.tensor(shape_t4(2, self.w[1], 1, 1), aligned=False) if self.bias else None
        o = r.out(shape_t4(self.x[0], self.w[1], *self.out))
        bmk1880_tpu_conv(r.ctx, bmk1880_conv_param_t(ofmap=o, ifmap=x, weight=w, bias=bias, **self.params))
        return r.done(o=o)


_PAD1 = {"pad_top": 1, "pad_bottom": 1, "pad_left": 1, "pad_right": 1}

CASES |= {
    "conv x(2,3,9,10) w(3,40,3,3) pad1 rsh8": Conv((2, 3, 9, 10), (3, 40, 3, 3), (9, 10), {**_PAD1, "rshift_width": 8}),
    "conv +bias stride(2,1) pad t1 l2 r1 rsh10 x(2,35,9,10) w(35,40,3,3)": Conv(
        (2, 35, 9, 10),
        (35, 40, 3, 3),
        (4, 11),
        {"stride_h": 2, "stride_w": 1, "pad_top": 1, "pad_left": 2, "pad_right": 1, "rshift_width": 10},
        bias=True,
    ),
    "conv +bias +relu, x(1,35,9,10) w(35,40,3,3) rsh10": Conv(
        (1, 35, 9, 10), (35, 40, 3, 3), (7, 8), {"relu_enable": True, "rshift_width": 10}, bias=True
    ),
    "conv u8 input, x(1,3,9,10) w(3,40,3,3) rsh8": Conv(
        (1, 3, 9, 10), (3, 40, 3, 3), (7, 8), {"rshift_width": 8}, fmt=FMT_U8
    ),
    "conv dilation 2,2 rsh8 x(1,3,9,10) w(3,40,3,3)": Conv(
        (1, 3, 9, 10), (3, 40, 3, 3), (5, 6), {"dilation_h": 2, "dilation_w": 2, "rshift_width": 8}
    ),
    "conv ins_h1 ins_last_h1 ins_w2 ins_last_w1 x(1,3,5,5) w(3,40,3,2) rsh8": Conv(
        (1, 3, 5, 5),
        (3, 40, 3, 2),
        (8, 13),
        {"ins_h": 1, "ins_last_h": 1, "ins_w": 2, "ins_last_w": 1, "rshift_width": 8},
    ),
}


@_case("max_pooling k3x2 s2x2 pad t1 l1, x(2,40,9,10) i8")
def _max_pooling() -> Built:
    r = Row()
    x, o = r.tensor(shape_t4(2, 40, 9, 10)), r.out(shape_t4(2, 40, 4, 5))
    window = {"kh": 3, "kw": 2, "stride_h": 2, "stride_w": 2, "pad_top": 1, "pad_left": 1}
    bmk1880_tpu_max_pooling(r.ctx, bmk1880_max_pooling_param_t(ofmap=o, ifmap=x, **window))
    return r.done(o=o)


@_case("avg_pooling k3x3 s2x1 pad1 const57 rsh9, x(2,40,9,10) i8")
def _avg_pooling() -> Built:
    r = Row()
    x, o = r.tensor(shape_t4(2, 40, 9, 10)), r.out(shape_t4(2, 40, 5, 10))
    window = {"kh": 3, "kw": 3, "stride_h": 2, "stride_w": 1, **_PAD1}
    p = bmk1880_avg_pooling_param_t(ofmap=o, ifmap=x, avg_pooling_const=57, rshift_width=9, **window)
    bmk1880_tpu_avg_pooling(r.ctx, p)
    return r.done(o=o)


@_case("depthwise k3x3 pad1 +bias rsh7, x(2,40,9,10)")
def _depthwise() -> Built:
    r = Row()
    x, w = r.tensor(shape_t4(2, 40, 9, 10)), r.tensor(shape_t4(1, 40, 3, 3))
    b, o = r.tensor(shape_t4(2, 40, 1, 1), aligned=False), r.out(shape_t4(2, 40, 9, 10))
    p = bmk1880_depthwise_param_t(ofmap=o, ifmap=x, weight=w, bias=b, rshift_width=7, **_PAD1)
    bmk1880_tpu_depthwise(r.ctx, p)
    return r.done(o=o)


@dataclass(frozen=True)
class MatrixMac:
    """A (5,100) x (100,70) row; a 16-bit old or new result is the matrix (10,70)."""

    params: dict[str, int]
    bias: bool = False
    accumulate: bool = False
    rows: int = 5

    def __call__(self) -> Built:
        r = Row()
        left, right = r.tensor(shape_t2(5, 100)), r.tensor(shape_t2(100, 70))
        bias = r.tensor(shape_t2(2, 70)) if self.bias else None
        res = r.tensor(shape_t2(self.rows, 70), load=self.accumulate)
        p = bmk1880_matrix_mac_param_t(res=res, left=left, right=right, bias=bias, **self.params)
        bmk1880_tpu_matrix_mac(r.ctx, p)
        return r.done(**{"q" if self.accumulate else "o": res})


CASES |= {
    "matrix_mac (5,100)x(100,70) rsh7 ->8": MatrixMac({"rshift_width": 7}),
    "matrix_mac +bias +RELU rsh8 ->8": MatrixMac({"rshift_width": 8, "ctrls": CTRL_RELU}, bias=True),
    "matrix_mac ->16 rsh2 (o is (10,70))": MatrixMac({"rshift_width": 2, "res_is_int8": False}, rows=10),
    "matrix_mac RA lsh3 rsh8 ->8 (q=(10,70) in place)": MatrixMac(
        {"lshift_width": 3, "rshift_width": 8, "ctrls": CTRL_RA}, accumulate=True, rows=10
    ),
}


@_case("matrix_mac_2")
def _matrix_mac_2() -> Built:
    r = Row()
    left, right = r.tensor(shape_t4(1, 256, 1, 256)), r.tensor(shape_t4(256, 16, 1, 16))
    o = r.out(shape_t4(1, 256, 1, 256))
    bmk1880_tpu_matrix_mac_2(r.ctx, bmk1880_matrix_mac_2_param_t(res=o, left=left, right=right))
    return r.done(o=o)


@_case("gdma load CTRL_TP (40,2,5,7) from gmem (2,40,5,7)")
def _load_transposed() -> Built:
    r = Row()
    a = r.out(shape_t4(40, 2, 5, 7))
    r.load(a, CTRL_TP)
    return r.done(a=a)


@_case("gdma matrix load CTRL_TP (50,7)")
def _load_matrix_transposed() -> Built:
    r = Row()
    a = r.out(shape_t2(50, 7))
    r.load(a, CTRL_TP)
    return r.done(a=a)


def _lrn_shift(right: bool, step: int) -> Built:
    r = Row()
    a, o = r.tensor(), r.out()
    bmk1880_gdma_lrn_shift(r.ctx, o, a, right, step)
    return r.done(o=o)


CASES["gdma_lrn_shift right step2"] = lambda: _lrn_shift(True, 2)
CASES["gdma_lrn_shift left step3"] = lambda: _lrn_shift(False, 3)


@_case("gdma_copy_lmem (2,40,5,7)->(2,40,7,5)")
def _copy_lmem() -> Built:
    r = Row()
    a, o = r.tensor(), r.out(shape_t4(2, 40, 7, 5))
    bmk1880_gdma_copy_lmem(r.ctx, o, a)
    return r.done(o=o)


@_case("winograd x(1,8,8,8) gmem 0; w(8,40,1,9) gmem 512 -> lmem 64 ; o lmem 320 gmem 3392; pad1 rsh6")
def _winograd() -> Built:
    r = Row()
    x = r.tensor(shape_t4(1, 8, 8, 8))
    w = r.out(shape_t4(8, 40, 1, 16), aligned=False)
    bmk1880_gdma_load(r.ctx, w, r.place(8 * 40 * 9), CTRL_WINOGRAD)
    w = bmk1880_tl_prealloc(r.ctx, w.address, shape_t4(8, 40, 4, 4), FMT_I8)
    o = bmk1880_tl_prealloc_align(r.ctx, 320, shape_t4(1, 40, 8, 8), FMT_I8)
    p = bmk1880_winograd_param_t(ofmap=o, ifmap=x, weight=w, rshift_width=6, **_PAD1)
    bmk1880_tpu_winograd(r.ctx, p)
    return r.done(o=o)
