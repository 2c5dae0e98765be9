"""What ops that work element by element make of what is filled in: numbers, masks, and numbers that must stay finite.

A position that is multiplied by 0 is left out of a sum only if it is finite: what may become NaN or infinite is WILD.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Abs, Exp, Log, Relu, Sigmoid, Sqrt
from bmcompiler.ops.elements.elementwise import Add, Div, Mod, Mul, Pow, Sub
from bmcompiler.ops.elements.functions import Acos, Acosh, Asin, Atanh, Tan
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.elements.logic import Where
from bmcompiler.sizes.marks import Filled, Filling, hides, is_finite, worked_on

_OFTEN_UNDEFINED = (Acos, Acosh, Asin, Atanh, Log, Mod, Tan)


def filled(op: TensorOp, fills: Sequence[Filled]) -> Filled:
    """What an op of broadcasting operands, or of one, makes of what is filled into each."""
    numbers = [fill for fill in fills if isinstance(fill, float)]
    if len(numbers) == len(fills):
        return _computed(op, numbers)
    if isinstance(op, Where) and isinstance(fills[0], float):
        return fills[1] if fills[0] else fills[2]
    if isinstance(op, Cast) and op.type.is_float:
        return fills[0]
    if Filling.WILD in fills:
        return Filling.WILD
    if isinstance(op, Add) and not op.activation and any(map(hides, fills)):
        return Filling.HIDDEN
    if isinstance(op, Sub) and (hides(fills[0]) or (isinstance(fills[1], float) and hides(-fills[1]))):
        return Filling.HIDDEN
    if not all(map(is_finite, fills)):
        return Filling.WILD
    if isinstance(op, Mul) and 0.0 in numbers:
        return 0.0
    return _finite(op, fills)


def _computed(op: TensorOp, numbers: Sequence[float]) -> Filled:
    arrays = [np.full((1,) * v.type.rank, number).astype(v.type.numpy) for v, number in zip(op.operands, numbers)]
    with np.errstate(all="ignore"):
        result = float(np.asarray(op.evaluate(*arrays)).reshape(-1)[0])
    return Filling.WILD if math.isnan(result) else result


def _finite(op: TensorOp, fills: Sequence[Filled]) -> Filled:
    """The sign that finite operands leave, where a divisor or a root behind it may need it."""
    above = [fill is Filling.POSITIVE or (isinstance(fill, float) and fill > 0) for fill in fills]
    from_0 = [up or fill is Filling.NOT_NEGATIVE or fill == 0.0 for up, fill in zip(above, fills)]
    sign = Filling.POSITIVE if all(above) else Filling.NOT_NEGATIVE if all(from_0) else Filling.ANY
    if isinstance(op, Add) and all(from_0) and any(above):
        return Filling.POSITIVE
    if isinstance(op, Mul) and op.a is op.b:
        return Filling.NOT_NEGATIVE
    if isinstance(op, Div):
        return sign if above[1] or (isinstance(fills[1], float) and fills[1] != 0) else Filling.WILD
    if isinstance(op, Sqrt):
        return sign if from_0[0] else Filling.WILD
    if isinstance(op, Pow):
        power = fills[1]
        if above[0] or (isinstance(power, float) and power >= 0 and power.is_integer()):
            return Filling.NOT_NEGATIVE if isinstance(power, float) and power % 2 == 0 else sign
        return Filling.WILD
    if isinstance(op, (Abs, Exp, Relu, Sigmoid)):
        return Filling.NOT_NEGATIVE
    if isinstance(op, _OFTEN_UNDEFINED):
        return Filling.ANY if isinstance(op, Log) and above[0] else Filling.WILD
    return sign if isinstance(op, (Add, Mul)) else worked_on(*fills)
