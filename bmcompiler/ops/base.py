"""How an op is declared: one class with its operands, attributes, shape rule and meaning.

From the declaration come the constructor, the verifier, the attribute access (`op.strides`), the builder method and the
documentation. See `nn.Conv` for the model of a declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from bmcompiler.errors import ShapeError, VerifyError
from bmcompiler.ir import Block, Location, Module, Operation, TensorType, Value
from bmcompiler.ir.keys import DIALECT
from bmcompiler.plugins.tables import Doors, PluginTable

REQUIRED: Any = object()
"""Default of an attribute that must be given."""


@dataclass(frozen=True)
class Operand:
    """A declared operand; `rank` None takes any number of axes. Made by `operand`."""

    name: str
    rank: int | None = None
    optional: bool = False
    variadic: bool = False


def operand(name: str, rank: int | None = None, *, optional: bool = False, variadic: bool = False) -> Operand:
    """Declare an operand. Optional ones come last; a variadic one is the only one after the fixed ones."""
    return Operand(name, rank, optional, variadic)


@dataclass(frozen=True)
class Kind:
    """The type of an attribute: a name for messages and a function that normalises a value or raises TypeError."""

    name: str
    normalize: Callable[[Any], Any]


@dataclass(frozen=True)
class Attr:
    """A declared attribute with its default. Made by `attr`."""

    name: str
    kind: Kind
    default: Any = REQUIRED


def attr(name: str, kind: Kind | type[Any], default: Any = REQUIRED) -> Attr:
    """Declare an attribute; `kind` is int, float, bool, str or one of the list kinds below."""
    return Attr(name, kind if isinstance(kind, Kind) else _SCALARS[kind], default)


def _scalar(kind: type) -> Callable[[Any], Any]:
    def normalize(value: Any) -> Any:
        item = value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value
        if kind is float and isinstance(item, int) and not isinstance(item, bool):
            return float(item)
        if type(item) is not kind:
            raise TypeError
        return item

    return normalize


def _list(kind: type, length: int | None = None) -> Callable[[Any], Any]:
    one = _scalar(kind)

    def normalize(value: Any) -> Any:
        if isinstance(value, (str, bytes)):
            raise TypeError
        items = tuple(one(v) for v in value)
        if length is not None and len(items) != length:
            raise TypeError
        return items

    return normalize


_SCALARS: dict[type[Any], Kind] = {kind: Kind(kind.__name__, _scalar(kind)) for kind in (int, float, bool, str)}
Ints = Kind("list of int", _list(int))
Floats = Kind("list of float", _list(float))
Strs = Kind("list of str", _list(str))
Pair = Kind("two ints (height, width)", _list(int, 2))
Quad = Kind("four ints (top, bottom, left, right)", _list(int, 4))


class TensorOp(Operation):
    """Base of all TensorOps.

    A subclass sets `ins` and `attrs` (tables), and defines `infer` and `evaluate`.
    """

    opname: ClassVar[str] = ""
    ins: ClassVar[tuple[Operand, ...]] = ()
    attrs: ClassVar[tuple[Attr, ...]] = ()
    free_dtype: ClassVar[bool] = False
    """True where the caller chooses the element type of the results (integer forms); shapes always follow `infer`."""
    pointwise: ClassVar[bool] = False
    """True where the op works on each element of operand 0 alone, whatever its shape: layout passes move it freely."""

    _operand_index: ClassVar[dict[str, int]] = {}
    _defaults: ClassVar[dict[str, Any]] = {}

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
        cls._operand_index = {o.name: i for i, o in enumerate(cls.ins)}
        cls._defaults = {a.name: a.default for a in cls.attrs}

    def __getattr__(self, name: str) -> Any:
        """Operands and attributes by their declared names; an absent optional operand is None."""
        cls = type(self)
        if name in cls._defaults:
            return self.attributes.get(name, cls._defaults[name])
        index = cls._operand_index.get(name)
        if index is None:
            raise AttributeError(f"{cls.__name__} has no operand or attribute {name!r}")
        if cls.ins[index].variadic:
            return self.operands[index:]
        return self.operands[index] if index < len(self.operands) else None

    # -- what an op defines ------------------------------------------------------------------------------------------
    def infer(self) -> TensorType | Sequence[TensorType]:
        """Result type(s) from operand types and attributes. Raises ShapeError via `self.shape_error`."""
        raise TypeError(f"{type(self).__name__} defines no shape rule")

    def evaluate(self, *arrays: Any) -> Any:
        """The exact meaning on numpy arrays (one per operand, absent optional ones left out); array or tuple."""
        raise TypeError(f"{type(self).__name__} defines no meaning")

    def check(self) -> None:
        """Further rules of the op (element types, ranges). Raises VerifyError via `self.invalid`."""

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
        self.check()

    def clone(self, operands: Sequence[Value], **changes: Any) -> TensorOp:
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
        for spec in self.attrs:
            if spec.name not in attributes:
                if spec.default is REQUIRED:
                    raise VerifyError(f"attribute '{spec.name}' is missing", layer=label, kind=self.opname)
                continue
            try:
                value = spec.kind.normalize(attributes[spec.name])
            except (TypeError, ValueError):
                raise VerifyError(
                    f"attribute '{spec.name}' must be {spec.kind.name}, got {attributes[spec.name]!r}",
                    layer=label,
                    kind=self.opname,
                ) from None
            if value != spec.default or type(value) is not type(spec.default):
                normal[spec.name] = value
        for name, value in attributes.items():
            if "." in name:
                normal[name] = value
            elif name not in self._defaults:
                known = ", ".join(self._defaults) or "none"
                raise VerifyError(f"unknown attribute '{name}'; known: {known}", layer=label, kind=self.opname)
        return normal


_Op = TypeVar("_Op", bound=type[TensorOp])
OPS: PluginTable[str, type[TensorOp]] = PluginTable(
    Doors("bmcompiler.tensor_ops", lambda found: None), lambda name: f"TensorOp '{name}'", lambda name: (name,)
)
"""Op name -> class; use `bmcompiler.ops.find_op`."""


def tensorop(name: str) -> Callable[[_Op], _Op]:
    """Class decorator: declare `tensorop.NAME`. Raises UnsupportedError when a built-in class has the name."""

    def register(cls: _Op) -> _Op:
        OPS.add(name, cls)
        cls.opname = name
        return cls

    return register
