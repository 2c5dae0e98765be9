"""A stage of a BM1684 model decoded for analysis."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684.isa import FORMATS, ID_FIELDS
from bmcompiler.bmodel.bm168x import Bm168xStage
from bmcompiler.runtime.simulator.bm168x.decoded import DecodedStage, decode_stage


def decode(stage: Bm168xStage) -> DecodedStage:
    """All static subnets of a stage; see `decode_stage`."""
    return decode_stage(stage, lambda engine, data: FORMATS[engine].decode(np.frombuffer(data, np.uint8)), ID_FIELDS)
