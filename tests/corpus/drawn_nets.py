"""Small networks of every family as tests: what faults on purpose are asked about that the tests did not find.

No test_*.py: `make corpus` asks larger ones of other seeds, so that only `tools/mutate.py` names this file.
"""

from __future__ import annotations

import numpy as np
import pytest

from .blocks import drawn_net
from .cases import FAMILIES, MODES
from .checks import levels_agree, near_float, program_is_evaluate
from .costs import rows_have_bounds
from .trial import NotAskedError, Trial

SIZES = ((16, 16), (24, 32), (33, 47))
NAMES = list(FAMILIES)


def trial(family: str, turn: int) -> Trial:
    """A network of a family in one of the modes, whose turns all families take."""
    number = NAMES.index(family)
    random = np.random.default_rng(1000 * turn + number)
    net = drawn_net(random, (SIZES[(number + turn) % len(SIZES)],), (1, 1, 2, 3))
    net.g.outputs = net.given(FAMILIES[family](net))
    batch = net.g.inputs
    data = {key: np.concatenate([value, np.flip(value, -1)]) for key, value in batch.items()}
    return Trial(net.g.model(), data, batch, *MODES[(number + 3 * turn) % len(MODES)], level=(number + turn) % 3)


@pytest.mark.parametrize("turn", range(2))
@pytest.mark.parametrize("family", NAMES)
def test_a_small_network(family: str, turn: int) -> None:
    """It compiles, its program computes what `evaluate` says, levels agree, and floats are near ONNX Runtime."""
    asked = trial(family, turn)
    for ask in (program_is_evaluate, near_float, levels_agree, rows_have_bounds):
        try:
            ask(asked)
        except NotAskedError:
            continue
