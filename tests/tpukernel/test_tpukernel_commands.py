"""The library's commands against those that the vendor's library emits."""

from __future__ import annotations

import numpy as np
import pytest
from tpukernel_golden import Case, cases, helpers, meaning

from bmcompiler.backends.bm1684x import static_tables
from bmcompiler.backends.bm1684x.asm import assemble
from bmcompiler.backends.bm1684x.isa import TRANS
from bmcompiler.backends.bm1684x.tpukernel.rows import Known
from bmcompiler.errors import BMError
from bmcompiler.tpukernel import FUNCTIONS, TABLE


@pytest.mark.parametrize("case", cases(), ids=str)
def test_commands_are_those_of_the_vendors_library(case: Case) -> None:
    ours = [meaning(int(command.engine), command.data) for command in case.program().commands]
    assert ours == [meaning(*command) for command in case.commands]


def test_recorded_values_of_helpers() -> None:
    """Also that we refuse what the library asserts on."""
    wrong = []
    for name, arguments, value in helpers():
        try:
            found = FUNCTIONS[name](*arguments)
        except BMError:
            found = None
        if found != value:
            wrong.append((name, arguments, found, value))
    assert not wrong


def test_programs_survive_the_assembler() -> None:
    programs = [case.program() for case in cases() if case.number % 10 == 0 or len(case.calls) > 1]
    assert all(assemble(program.disassembly()) == program.groups for program in programs)
    assert any(len(program.groups) > 1 for program in programs)  # tpu_initialize begins the ids again


LOADED = {
    "exp_coeff": (static_tables.EXP, 32),
    "exp_table": (static_tables.EXP_TABLE, 192),
    "log_coeff": (static_tables.LOG, 32),
    "erf_coeff": (static_tables.ERF, 10),
    "sin_coeff": (static_tables.SIN, 32),
    "cos_coeff": (static_tables.COS, 32),
    "tan_coeff": (static_tables.TAN, 32),
    "arcsin_coeff": (static_tables.ARCSIN, 32),
}


@pytest.mark.parametrize("name", LOADED)
def test_loaders_fill_what_the_reference_says(name: str) -> None:
    case = Case(0, [(f"tpu_bdc_load_fp32_{name}", [4096])], "", [], *[(np.zeros(0), np.zeros(0))] * 2)
    (command,) = case.program("seed").commands
    fields = TRANS.unpack(command.data)
    table, words = LOADED[name]
    assert (fields["res0_w"], fields["opd0_addr"]) == (words, 0x0900_0000 + table.offset)


def test_the_library_has_the_functions_that_kernels_call_most() -> None:
    assert len(TABLE) >= 120


def test_recorded_functions_are_recorded() -> None:
    recorded = {name for case in cases() for name, _ in case.calls} | {name for name, _, _ in helpers()}
    named = {row.name for row in TABLE.values() if row.source in (Known.RECORDED, Known.REFERENCE)}
    assert recorded - named == {"tpu_hau_sort_natural_index"}, "which has calls with drawn arguments, too"
    assert named <= recorded
