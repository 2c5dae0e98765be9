"""How an op is declared: one class with its operands, attributes, shape rule and meaning.

From the declaration come the constructor, the verifier, the attribute access (`op.strides`), the builder method and the
documentation. See `nn.Conv` for the model of a declaration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NoReturn, TypeVar, overload

from bmcompiler.errors import ShapeError, VerifyError
from bmcompiler.ir import Block, Location, Module, Operation, TensorType, Value
from bmcompiler.ir.keys import DIALECT
from bmcompiler.ir.types import DTYPES, FLOAT_DTYPES, INTEGER_DTYPES
from bmcompiler.plugins.tables import Doors, PluginTable

REQUIRED: Any = object()
"""Default of an attribute that must be given."""
FLOAT, INTEGER = (tuple(x for x in DTYPES if x in some) for some in (FLOAT_DTYPES, INTEGER_DTYPES))
NUMBER = (*FLOAT, *INTEGER)
_SAID = {FLOAT: "of a float type", INTEGER: "integers", NUMBER: "numbers", (*INTEGER, "bool"): "integers or bool"}


_T = TypeVar("_T")
_Self = TypeVar("_Self", bound="TensorOp")


class Operand(Generic[_T]):
    """A declared operand. Read from an op it is its value, its value or None, or a list of values; cannot be assigned.

    Made by `operand`, `optional_operand` and `variadic_operand`. `rank` None takes any number of axes; `elements` are
    the element types that it may have, () for all.
    """

    name: str
    index: int
    """Its place among the operands of the op; of a variadic operand that of its first value."""

    def __init__(
        self, rank: int | None, elements: Sequence[str], optional: bool = False, variadic: bool = False
    ) -> None:
        self.rank, self.elements, self.optional, self.variadic = rank, elements, optional, variadic

    def __set_name__(self, owner: type[Operation], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, op: None, owner: type[Operation]) -> Operand[_T]: ...

    @overload
    def __get__(self, op: Operation, owner: type[Operation]) -> _T: ...

    def __get__(self, op: Operation | None, owner: type[Operation]) -> Any:
        if op is None:
            return self
        if self.variadic:
            return op.operands[self.index :]
        if self.optional and self.index >= len(op.operands):
            return None
        return op.operands[self.index]

    def __set__(self, op: Operation, value: NoReturn) -> None:
        raise AttributeError(f"operand '{self.name}' cannot be assigned: use set_operand({self.index}, value)")


def operand(rank: int | None = None, elements: Sequence[str] = ()) -> Operand[Value]:
    """Declare an operand that is always there."""
    return Operand(rank, elements)


def optional_operand(rank: int | None = None, elements: Sequence[str] = ()) -> Operand[Value | None]:
    """Declare an operand that may be absent: None. Optional ones come last."""
    return Operand(rank, elements, optional=True)


def variadic_operand(elements: Sequence[str] = ()) -> Operand[Sequence[Value]]:
    """Declare any number of further operands; the only one after the fixed ones."""
    return Operand(None, elements, variadic=True)


@dataclass(frozen=True)
class Kind(Generic[_T]):
    """The type of an attribute: a name for messages and a function that normalises a value or raises TypeError."""

    name: str
    normalize: Callable[[Any], _T]


class Attribute(Generic[_T]):
    """A declared attribute. Read from an op it is its value, or the default; cannot be assigned. Made by `attr`."""

    name: str

    def __init__(self, kind: Kind[_T], default: _T) -> None:
        self.kind, self.default = kind, default

    def __set_name__(self, owner: type[Operation], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, op: None, owner: type[Operation]) -> Attribute[_T]: ...

    @overload
    def __get__(self, op: Operation, owner: type[Operation]) -> _T: ...

    def __get__(self, op: Operation | None, owner: type[Operation]) -> Attribute[_T] | _T:
        if op is None:
            return self
        value: _T = op.attributes.get(self.name, self.default)
        return value

    def __set__(self, op: Operation, value: NoReturn) -> None:
        raise AttributeError(f"attribute '{self.name}' cannot be assigned: set attributes['{self.name}']")


def attr(kind: Kind[_T] | type[_T], default: _T = REQUIRED) -> Attribute[_T]:
    """Declare an attribute; `kind` is int, float, bool, str or one of the list kinds below."""
    return Attribute(kind if isinstance(kind, Kind) else _SCALARS[kind], default)


def _scalar(kind: type[_T]) -> Callable[[Any], _T]:
    def normalize(value: Any) -> _T:
        item: Any = value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value
        if kind is float and isinstance(item, int) and not isinstance(item, bool):
            item = float(item)
        if type(item) is not kind:
            raise TypeError
        return item

    return normalize


def _list(kind: type[_T], length: int | None = None) -> Callable[[Any], Any]:
    """A tuple of values of a kind, which the declared type of the attribute says."""
    one = _scalar(kind)

    def normalize(value: Any) -> tuple[_T, ...]:
        if isinstance(value, (str, bytes)):
            raise TypeError
        items = tuple(one(v) for v in value)
        if length is not None and len(items) != length:
            raise TypeError
        return items

    return normalize


_SCALARS: dict[type[Any], Kind[Any]] = {kind: Kind(kind.__name__, _scalar(kind)) for kind in (int, float, bool, str)}


def one_of(*words: str) -> Kind[str]:
    """An attribute that is one of some words."""
    return Kind(" or ".join(words), lambda value: words[words.index(value)])


Ints: Kind[tuple[int, ...]] = Kind("list of int", _list(int))
Floats: Kind[tuple[float, ...]] = Kind("list of float", _list(float))
Strs: Kind[tuple[str, ...]] = Kind("list of str", _list(str))
Pair: Kind[tuple[int, int]] = Kind("two ints (height, width)", _list(int, 2))
Quad: Kind[tuple[int, int, int, int]] = Kind("four ints (top, bottom, left, right)", _list(int, 4))
Axis: Kind[int] = Kind("an axis (int)", _SCALARS[int].normalize)
"""An axis of the operands; negative ones count from the last."""
Axes: Kind[tuple[int, ...]] = Kind("axes (list of int)", Ints.normalize)
"""Some of their axes."""
PerAxis: Kind[tuple[int, ...]] = Kind("one int per axis", Ints.normalize)
"""One entry per axis."""
PerAxisPairs: Kind[tuple[int, ...]] = Kind("two ints per axis (before, after)", Ints.normalize)
"""Two entries per axis: before, after."""


class TensorOp(Operation):
    """Base of all TensorOps.

    A subclass sets `ins` and `attrs` (tables), and defines `infer` and `evaluate`.
    """

    opname: ClassVar[str] = ""
    ins: ClassVar[tuple[Operand[Any], ...]] = ()
    """The declared operands in their order."""
    attrs: ClassVar[Mapping[str, Attribute[Any]]] = {}
    """The declared attributes by name."""
    free_dtype: ClassVar[bool] = False
    """True where the caller chooses the element type of the results (integer forms); shapes always follow `infer`."""

    one_type: ClassVar[bool] = False
    """True where all operands have one element type."""

    # What passes ask for, so that they need no lists of ops. tests/ops/test_properties.py holds every op to its claims.
    pointwise: ClassVar[bool] = False
    """True where the op works on each element of operand 0 alone, whatever its shape: layout passes move it freely."""
    broadcasts: ClassVar[bool] = False
    """True where the operands broadcast to one shape and an element of the result follows from those at its place."""
    moves_only: ClassVar[bool] = False
    """True where each element of a result is one of an operand, from a place that shapes and attributes decide."""
    selects: ClassVar[bool] = False
    """True where each element of a result is one of an operand; values may decide which (max_pool)."""
    masks: ClassVar[bool] = False
    """True where a very large or infinite operand hides the others: so attention is told where not to look."""
    follows_axes: ClassVar[bool] = False
    """True where f(permute(x)) = permute(f(x)) with attributes that name axes mapped (kinds `Axis`, `PerAxis`...)."""
    idempotent: ClassVar[bool] = False
    """True where f(f(x)) = f(x), with the same attributes."""
    saturates: ClassVar[bool] = False
    """True where the integer form cuts its exact results off at the ends of their element type."""
    affine: ClassVar[bool] = False
    """True where results are products of operand 0 with weights, their sums, and a bias: the work of a network."""
    weight_operands: ClassVar[tuple[str, ...]] = ()
    """Operands that hold weights in trained networks; they do not share the axes of the data."""
    homogeneous: ClassVar[bool] = False
    """True where f(s * x) = s * f(x) for operand 0 and positive numbers s, one per channel (axis 1)."""
    confident: ClassVar[bool] = False
    """True where results are confidences in (-inf, 1]: each grows with the element at its place, up to a limit."""
    steep: ClassVar[bool] = False
    """True where the slope is hundreds of times larger at some operands than at others (exp, roots, powers)."""
    picks: ClassVar[bool] = False
    """True where results are positions, or chosen by a ranking: a small change of operands may change them wholly."""
    index_operands: ClassVar[tuple[int, ...]] = ()
    """Operands that are indices, i32 or i64: what the op does follows from the numbers, not from their type."""
    reads_bits: ClassVar[bool] = False
    """True where results depend on how numbers are written, not only on which they are."""
    bounds: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    """Between which numbers all results lie, whatever the operands and attributes are."""

    def __init__(
        self,
        operands: Iterable[Value] = (),
        attributes: Mapping[str, Any] | None = None,
        result_types: Sequence[TensorType] | None = None,
        location: Location = (),
        regions: Iterable[Block] = (),
    ) -> None:
        super().__init__(
            DIALECT + self.opname, operands, (), self._normalize(attributes or {}, location), regions, location
        )
        self._check_operands()
        types = list(result_types) if result_types is not None else self.inferred()
        self.results = [Value(t, self, i) for i, t in enumerate(types)]

    def __init_subclass__(cls) -> None:
        declared: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            declared.update(vars(base))
        cls.attrs = {name: spec for name, spec in declared.items() if isinstance(spec, Attribute)}
        cls.ins = tuple(spec for spec in declared.values() if isinstance(spec, Operand))
        for index, spec in enumerate(cls.ins):
            if vars(spec).setdefault("index", index) != index:
                raise TypeError(f"{cls.__name__}: operand '{spec.name}' has another place in a base class")

    # -- what an op defines ------------------------------------------------------------------------------------------
    def infer(self) -> TensorType | Sequence[TensorType]:
        """Result type(s) from operand types and attributes. Raises ShapeError via `self.shape_error`."""
        raise TypeError(f"{type(self).__name__} defines no shape rule")

    def evaluate(self, *arrays: Any) -> Any:
        """The exact meaning on numpy arrays (one per operand, absent optional ones left out); array or tuple."""
        raise TypeError(f"{type(self).__name__} defines no meaning")

    def check(self) -> None:
        """Further rules of the op (ranges, what follows from attributes). Raises VerifyError via `self.invalid`."""

    # -- what passes ask of one op -----------------------------------------------------------------------------------
    @classmethod
    def commutes_with_permutes(cls) -> bool:
        """Whether a permute of the data can stand behind the op instead of before it."""
        return cls.pointwise or cls.broadcasts or cls.follows_axes

    def is_identity(self) -> bool:
        """Whether the result is operand 0 unchanged, provided that both have one type."""
        return False

    def result_bounds(self) -> tuple[float, float]:
        """`bounds` of this very op, with its attributes."""
        return self.bounds

    def keeps_sign(self) -> bool:
        """Whether no result is negative where no operand is."""
        return self.selects

    def keeps_range(self) -> bool:
        """Whether no result is larger in magnitude than the largest operand (slopes, limits, padding as usual)."""
        return self.selects

    # -- shared behaviour --------------------------------------------------------------------------------------------
    def inferred(self) -> list[TensorType]:
        """Result types by `infer`, always as a list. Raises ShapeError."""
        try:
            types = self.infer()
        except ValueError as error:  # from TensorType: a dimension or a whole tensor that cannot be
            raise self.shape_error(str(error)) from None
        return [types] if isinstance(types, TensorType) else list(types)

    def shape_error(self, reason: str) -> ShapeError:
        """The error for shapes that do not fit, naming the layer and the op."""
        return ShapeError(reason, layer=self.label, kind=self.opname)

    def invalid(self, reason: str) -> VerifyError:
        """The error for anything else that breaks a rule of the op, naming the layer and the op."""
        return VerifyError(reason, layer=self.label, kind=self.opname)

    def verify_op(self, module: Module) -> None:
        """Operand count and ranks, attribute names and kinds, result shapes and types, and the op's own `check`."""
        self._check_operands()
        if self._normalize(self.attributes, self.location) != self.attributes:
            raise self.invalid("an attribute is not in its normal form (wrong type, or equal to its default)")
        expected = self.inferred()
        if len(expected) != len(self.results):
            raise self.invalid(f"has {len(self.results)} results, expected {len(expected)}")
        for want, result in zip(expected, self.results):
            if want.shape != result.shape:
                raise self.invalid(f"result shape {list(result.shape)} should be {list(want.shape)}")
            if want.dtype != result.dtype and not self.free_dtype:
                raise self.invalid(f"result type {result.dtype} should be {want.dtype}")
        self.check_all()

    def check_all(self) -> None:
        """Element types as they are declared, then the op's own `check`. Raises VerifyError."""
        for spec in self.ins:
            for value in self.operands[spec.index :] if spec.variadic else self.operands[spec.index : spec.index + 1]:
                if spec.elements and value.dtype not in spec.elements:
                    said = _SAID.get(tuple(spec.elements)) or " or ".join(spec.elements)
                    raise self.invalid(f"operand '{spec.name}' must be {said}, got {value.dtype}")
        found = dict.fromkeys(value.dtype for value in self.operands)
        if self.one_type and len(found) > 1:
            raise self.invalid(f"operands must have one element type, got {', '.join(found)}")
        self.check()

    def clone(self: _Self, operands: Sequence[Value], **changes: Any) -> _Self:
        """The same op on other operands, with some attributes changed; result shapes are inferred again.

        Chosen element types (`free_dtype`) and their quantization stay while the operands keep their element types.
        """
        copy = type(self)(operands, {**self.attributes, **changes}, None, self.location)
        if self.free_dtype and [v.dtype for v in operands] == [v.dtype for v in self.operands]:
            for new, old in zip(copy.results, self.results):
                new.type = TensorType(new.shape, old.dtype, old.type.quant)
        return copy

    def _check_operands(self) -> None:
        fixed = [o for o in self.ins if not o.variadic]
        least = sum(not o.optional for o in fixed)
        most = len(fixed) if len(fixed) == len(self.ins) else None
        count = len(self.operands)
        if count < least or (most is not None and count > most):
            wanted = str(least) if most == least else f"{least} to {most}" if most is not None else f"{least} or more"
            raise self.invalid(f"takes {wanted} operands, got {count}")
        for spec, value in zip(fixed, self.operands):
            if spec.rank is not None and value.type.rank != spec.rank:
                raise self.shape_error(f"operand '{spec.name}' must have {spec.rank} axes, got {list(value.shape)}")

    def _normalize(self, attributes: Mapping[str, Any], location: Location) -> dict[str, Any]:
        """Checked attributes without those equal to their default; dotted names are free notes and pass through."""
        label = "+".join(location) or self.opname
        normal: dict[str, Any] = {}
        for spec in self.attrs.values():
            if spec.name not in attributes:
                if spec.default is REQUIRED:
                    raise VerifyError(f"attribute '{spec.name}' is missing", layer=label, kind=self.opname)
                continue
            try:
                value = spec.kind.normalize(attributes[spec.name])
            except (TypeError, ValueError):
                reason = f"attribute '{spec.name}' must be {spec.kind.name}, got {attributes[spec.name]!r}"
                raise VerifyError(reason, layer=label, kind=self.opname) from None
            if value != spec.default or type(value) is not type(spec.default):
                normal[spec.name] = value
        for name, value in attributes.items():
            if "." in name:
                normal[name] = value
            elif name not in self.attrs:
                known = ", ".join(self.attrs) or "none"
                raise VerifyError(f"unknown attribute '{name}'; known: {known}", layer=label, kind=self.opname)
        return normal


_OpClass = TypeVar("_OpClass", bound=type[TensorOp])
OPS: PluginTable[str, type[TensorOp]] = PluginTable(
    Doors("bmcompiler.tensor_ops", lambda found: None), lambda name: f"TensorOp '{name}'", lambda name: (name,)
)
"""Op name -> class; use `bmcompiler.ops.find_op`."""


def tensorop(name: str) -> Callable[[_OpClass], _OpClass]:
    """Class decorator: declare `tensorop.NAME`. Raises UnsupportedError when a built-in class has the name.

    No declared op is the base of another, for passes tell ops by `isinstance`: what two share is a base of its own.
    """

    def register(cls: _OpClass) -> _OpClass:
        declared = [base.__name__ for base in cls.__mro__[1:] if vars(base).get("opname")]
        if declared:
            raise TypeError(f"op '{name}' is derived from the op {declared[0]}: derive both from a base class")
        OPS.add(name, cls)
        cls.opname = name
        return cls

    return register
