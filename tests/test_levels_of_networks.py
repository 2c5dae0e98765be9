"""Networks give the same bits at levels 0, 1 and 2, on every chip that has them, count the same products, and waste
no memory.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from level_nets import MODES, QUICK, SMALL, Network, assert_memory_is_close_to_what_is_alive_at_once

from bmcompiler.runtime import Session

LARGE = {
    "ppocr_v2_cls": ("bm1684x", "f16"),
    "res10_ssd_face": ("bm1684", "f32"),
    "light_squeezenet": ("bm1684", "int8"),
}
"""These take seconds in every mode: each has one. `tests/test_group_bars.py` compares larger ones."""
MORE = (
    ("ppocr_v4_rec", "bm1684", "f32"),
    ("ppocr_v4_det", "bm1684", "f32"),
    ("centerface_480", "bm1684", "f32"),
    ("light_inception_v1", "bm1880", "int8"),
    ("light_inception_v2", "bm1684", "int8"),
    ("light_shufflenet", "bm1880", "int8"),
    ("light_densenet121", "bm1684", "f32"),
    *(("ppocr_v2_cls", *mode) for mode in MODES if mode != LARGE["ppocr_v2_cls"]),
    ("ppocr_v4_det", "bm1684x", "int8"),
    ("res10_ssd_face", "bm1684x", "int8"),
    ("light_shufflenet", "bm1684x", "int8"),
    ("light_squeezenet", "bm1684x", "f16"),
)
CASES = [
    *((name, *mode) for name in QUICK for mode in MODES),
    *(
        pytest.param((name, *mode), marks=pytest.mark.slow, id="-".join((name, *mode)))
        for name in dict.fromkeys((*SMALL, *LARGE))
        for mode in MODES
        if LARGE.get(name, mode) == mode
    ),
    *(pytest.param(case, marks=pytest.mark.sweep, id="-".join(case)) for case in MORE),
]


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_levels_give_the_same_bits(case: tuple[str, str, str], shared: Path) -> None:
    network = Network(*case, shared)
    results = [network.at(level) for level in (0, 1, 2)]
    expected, *others = (network.outputs(Session(result.model)) for result in results)
    assert expected
    for found in others:
        assert found == expected
    for level, result in enumerate(results):
        assert_memory_is_close_to_what_is_alive_at_once(result.totals, level)
    assert len({sum(row.macs for row in result.rows) for result in results}) == 1
