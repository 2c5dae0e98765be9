"""Windows of commands: a kernel or a stride of 0 is refused, whichever axis has it."""

from __future__ import annotations

from collections import defaultdict

import pytest

from bmcompiler.errors import SimulatorError
from bmcompiler.runtime.simulator.windows import window_of

SIZES = dict.fromkeys(("opd1_h", "opd1_w", "res_op_y_str", "res_op_x_str"), 1)
SIZES |= dict.fromkeys(("res0_h", "res0_w", "opd0_h", "opd0_w"), 3)


@pytest.mark.parametrize("name", ["opd1_h", "opd1_w", "res_op_y_str", "res_op_x_str"])
def test_kernels_and_strides_are_positive(name: str) -> None:
    window_of(defaultdict(int, SIZES))
    with pytest.raises(SimulatorError, match="must be positive"):
        window_of(defaultdict(int, SIZES | {name: 0}))
