"""The constraints kernel calls share (bm1880.md 8.3): messages name the call, the parameter, the value and the rule."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, TypeVar

from bmcompiler.backends.bm1880.bmkernel.prototypes import KERNEL
from bmcompiler.backends.bm1880.bmkernel.tensors import tensor_lmem
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.errors import EncodingError

F = TypeVar("F", bound=Callable[..., Any])
MAX_TPU_DIM = 4095
MAX_TPU_HW = 1024
MAX_STRIDE = 65535
MAX_RSHIFT = 31
MAX_LSHIFT = 31
MAX_MAC_RSHIFT = 15
RESULT_RULE = "a result is unsigned if and only if all inputs are"


class ConstraintError(EncodingError):
    """A constraint that the arguments of a call break; the call's name is put before it."""


def kernel_call(function: F) -> F:
    """A decorator: arguments are checked by the prototype, and a broken constraint names the function."""

    @wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        try:
            return function(*values, **named)
        except ConstraintError as broken:
            raise EncodingError(f"{function.__name__}: {broken.reason}") from broken

    return KERNEL.checked(call)  # type: ignore[return-value]


def fail(what: str, value: object, rule: str) -> NoReturn:
    """Raise the error of a broken constraint."""
    raise ConstraintError(f"{what} is {value}, {rule}")


def check_range(what: str, value: int, low: int, high: int) -> None:
    """`low <= value <= high`."""
    if not low <= value <= high:
        fail(what, value, f"must be {low}..{high}")


def check_tpu_tensor(what: str, t: tensor_lmem) -> None:
    """Limits of any TPU operand: a tensor, at most 4095 x 4095 x 1024 x 1024."""
    if not isinstance(t, tensor_lmem):
        fail(what, repr(t), "must be a local tensor")
    _, n, c, h, w = t.shape
    if t.is_matrix:
        fail(what, f"a matrix {t.shape}", "must be a tensor")
    if n > MAX_TPU_DIM or c > MAX_TPU_DIM or h > MAX_TPU_HW or w > MAX_TPU_HW:
        fail(f"shape of {what}", t.shape, f"n and c must be at most {MAX_TPU_DIM}, h and w at most {MAX_TPU_HW}")


def check_strides(what: str, t: tensor_lmem) -> None:
    """Explicit strides must fit their 16-bit fields."""
    if max(t.strides) > MAX_STRIDE or min(t.strides) < 0:
        fail(f"strides of {what}", tuple(t.strides), f"each must be 0..{MAX_STRIDE}")


def check_aligned(what: str, t: tensor_lmem) -> None:
    """Aligned layout at an address that is a multiple of 16."""
    if not t.has_aligned_layout:
        fail(what, f"{t.shape} with strides {tuple(t.strides)}", "must have the aligned layout (CTRL_AL)")
    check_address(what, t)


def check_address(what: str, t: tensor_lmem) -> None:
    """Address a multiple of 16."""
    if t.address % CHIP.alignment:
        fail(f"address of {what}", hex(t.address), f"must be a multiple of {CHIP.alignment}")


def check_unaligned(what: str, t: tensor_lmem) -> None:
    """Refuse a tensor that does not lie unaligned in local memory."""
    if t.aligned or not t.has_unaligned_layout:
        fail(what, f"{t.shape} with strides {tuple(t.strides)}", "must have the unaligned layout (CTRL_NULL)")


def check_same_lane(what: str, t: tensor_lmem, ref_name: str, ref: tensor_lmem) -> None:
    """Operands 1 and 2 have 16-bit addresses without a lane; the engine takes the result's lane (bm1880.md 2.4)."""
    if t.lane != ref.lane:
        fail(f"lane of {what}", t.lane, f"must be {ref.lane}, the lane of {ref_name}")


def check_shape(what: str, t: tensor_lmem, dims: tuple[int, int, int, int]) -> None:
    """Refuse a tensor of another shape than (n, c, h, w)."""
    if t.shape.dims != dims:
        fail(f"shape of {what}", t.shape, f"must be {dims}")


def check_format(what: str, t: tensor_lmem, signed: int, reason: str) -> None:
    """FMT_I8 (`signed` 1) or FMT_U8 (0)."""
    if t.signed != signed:
        have, need = ("FMT_I8", "FMT_U8") if t.signed else ("FMT_U8", "FMT_I8")
        fail(f"format of {what}", have, f"must be {need}: {reason}")
