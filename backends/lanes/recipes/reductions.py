"""Functions along reduced axes: statistics, normalisations, softmax, positions of extremes."""

from __future__ import annotations

from collections.abc import Callable

from bmcompiler.backends.lanes.recipes.exponential import exp, exp_below_zero, inverse, log, log_of_normal
from bmcompiler.backends.lanes.recipes.powers import root
from bmcompiler.backends.lanes.recipes.recorder import ONE, Recorder, Register


def mean(m: Recorder, x: Register, count: int) -> Register:
    """Sum of `count` elements times 1 / count."""
    return m.mul(m.total(x), 1 / count)


def lowest(m: Recorder, x: Register) -> Register:
    """Minimum: the maximum of -x, negated."""
    return m.neg(m.highest(m.neg(x)))


def sum_of_squares(m: Recorder, x: Register) -> Register:
    """Sum of x**2."""
    return m.total(m.mul(x, x))


def log_sum_exp(m: Recorder, x: Register) -> Register:
    """ln of the sum of e**x, shifted by the maximum so that nothing overflows."""
    top = m.highest(x)
    return m.add(log_of_normal(m, m.total(exp_below_zero(m, m.sub(x, top)))), top)


def softmax(m: Recorder, x: Register) -> Register:
    """e**(x - maximum) times the inverse of its sum."""
    powers = exp_below_zero(m, m.sub(x, m.highest(x)))
    return m.mul(powers, inverse(m, m.total(powers)))


def log_softmax(m: Recorder, x: Register) -> Register:
    """x - maximum - ln of the sum of e**(x - maximum)."""
    shifted = m.sub(x, m.highest(x))
    return m.sub(shifted, log_of_normal(m, m.total(exp_below_zero(m, shifted))))


def layer_norm(m: Recorder, x: Register, *rest: Register, count: int, epsilon: float) -> Register:
    """(x - mean) / sqrt(variance + epsilon), times the first and plus the second of `rest`."""
    centred = m.sub(x, mean(m, x, count))
    return _affine(m, m.mul(centred, _inverse_root(m, sum_of_squares(m, centred), count, epsilon)), *rest)


def rms_norm(m: Recorder, x: Register, *rest: Register, count: int, epsilon: float) -> Register:
    """x / sqrt(mean of x**2 + epsilon), times the first of `rest`."""
    return _affine(m, m.mul(x, _inverse_root(m, sum_of_squares(m, x), count, epsilon)), *rest)


def _inverse_root(m: Recorder, squares: Register, count: int, epsilon: float) -> Register:
    return m.rsqrt(m.add(m.mul(squares, 1 / count), epsilon))


def _affine(m: Recorder, x: Register, *rest: Register) -> Register:
    for combine, vector in zip((m.mul, m.add), rest):
        x = combine(x, vector)
    return x


def l2_normalize(m: Recorder, x: Register, epsilon: float) -> Register:
    """x / sqrt(sum of x**2 + epsilon)."""
    return m.mul(x, m.rsqrt(m.add(sum_of_squares(m, x), epsilon)))


def mean_variance_norm(m: Recorder, x: Register, count: int, scaled: bool, epsilon: float) -> Register:
    """(x - mean) / (sqrt(variance) + epsilon), or x - mean alone."""
    centred = m.sub(x, mean(m, x, count))
    if not scaled:
        return centred
    deviation = root(m, m.mul(sum_of_squares(m, centred), 1 / count))
    return m.mul(centred, m.div(1.0, m.add(deviation, epsilon)))


def local_response(m: Recorder, x: Register, size: int, alpha: float, beta: float, k: float) -> Register:
    """x / (k + alpha / size * sum of x**2 over windows of `size` rows) ** beta, for a positive base."""
    squares = m.window_total(m.mul(x, x), size, (size - 1) // 2)
    base = m.add(m.mul(squares, alpha / size), k)
    return m.mul(exp(m, m.mul(log_of_normal(m, base), -beta)), x)


def _best(m: Recorder, x: Register, negate: bool) -> Register:
    """1 where x is largest (or smallest), 0 elsewhere."""
    clean = m.add(m.neg(x) if negate else x, 0.0)
    return m.same_bits(clean, m.highest(clean), ONE)


def _scores(m: Recorder, x: Register, index: Register, count: int, negate: bool) -> Register:
    """count - index where x is largest (or smallest), 0 elsewhere."""
    found = _best(m, x, negate)
    return m.mul(found, m.sub(count, index))


def position(m: Recorder, x: Register, index: Register, count: int, negate: bool, last: bool = False) -> Register:
    """int32 index of the first (last) largest (smallest) element; `index` holds 0 to `count` - 1 (recipes 94)."""
    if last:
        return m.to_int(m.highest(m.mul(_best(m, x, negate), index)))
    return m.to_int(m.sub(count, m.highest(_scores(m, x, index, count, negate))))


def hardmax(m: Recorder, x: Register, index: Register, count: int) -> Register:
    """1 at the first largest element, 0 elsewhere."""
    scores = _scores(m, x, index, count, False)
    return m.same_bits(scores, m.highest(scores), ONE)


REDUCTIONS: dict[str, Callable[[Recorder, Register, int], Register]] = {
    "sum": lambda m, x, _: m.total(x),
    "mean": mean,
    "max": lambda m, x, _: m.highest(x),
    "min": lambda m, x, _: lowest(m, x),
    "prod": lambda m, x, count: m.product(x, count),
    "l1": lambda m, x, _: m.total(m.abs(x)),
    "l2": lambda m, x, _: root(m, sum_of_squares(m, x)),
    "sum_square": lambda m, x, _: sum_of_squares(m, x),
    "log_sum": lambda m, x, _: log(m, m.total(x)),
    "log_sum_exp": lambda m, x, _: log_sum_exp(m, x),
}
"""By method of the op `reduce`; the number is that of the reduced elements."""
