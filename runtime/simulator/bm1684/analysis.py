"""Timing, trace and race check of one BM1684 stage: the plugin `bmcompiler.analysis.profile.Analysis` of this chip."""

from __future__ import annotations

from bmcompiler.backends.bm1684.asm import mnemonics
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.timing_profile import PROFILE
from bmcompiler.runtime.simulator.bm168x.analysis import ChipAnalyzer
from bmcompiler.runtime.simulator.bm1684.cost import costs
from bmcompiler.runtime.simulator.bm1684.decoded import decode
from bmcompiler.runtime.simulator.bm1684.races import accesses

analyze = ChipAnalyzer(
    CHIP.name, PROFILE, decode, costs, lambda decoded, engine: mnemonics(engine, decoded.fields[engine]), accesses
)
