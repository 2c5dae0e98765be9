"""Probabilities that samples were sure of say little of those that are not: how far these move is in the scores before.

A softmax or sigmoid is flat where a network is sure, and steepest at an even chance. Samples that are all sure show
errors of nearly 0; the first that is not shows more than all of them together. The scores before have their errors in
every sample.
"""

from __future__ import annotations

from collections.abc import Mapping

from bmcompiler.evaluation.decisions import maker_of
from bmcompiler.ir import Value
from bmcompiler.ops.elements.activation import Softmax

_STEEPEST = {"softmax": 1 / 4, "sigmoid": 1 / 16}
"""Energy of the error at an even chance for a score's mean squared error: of a softmax for each row, where two scores
differ by twice that and both probabilities by a quarter of the difference; of a sigmoid for each value."""


def steep_energy(output: Value, errors: Mapping[Value, float]) -> float | None:
    """Energy of the errors of one step of an output if it were steep everywhere.

    Args:
        output: of the float network. errors: mean squared error of values of the float network, as far as known.

    None where no softmax or sigmoid makes it, or the error of its scores is not known.
    """
    made, _ = maker_of(output)
    if made is None or made.short_name not in _STEEPEST or made.operands[0] not in errors:
        return None
    rows = made.results[0].type.size
    if isinstance(made, Softmax):
        rows //= max(1, made.results[0].shape[made.axis])
    return rows * errors[made.operands[0]] * _STEEPEST[made.short_name]
