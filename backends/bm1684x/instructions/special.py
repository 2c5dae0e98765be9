"""Series, roots and exponents (SFU), lanes and static memory (TRANS&BC), tables (SG).

Source: bm1684x-vector.md 6 and 9.
"""

from __future__ import annotations

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Gather, Layout, Precision, Sfu, Task, Trans
from bmcompiler.backends.bm1684x.instructions.operands import Command, shape_fields
from bmcompiler.backends.bm1684x.isa import SFU, SG, TRANS
from bmcompiler.chip import Dims
from bmcompiler.instructions.isa import Fields
from bmcompiler.instructions.order import Engine


# -- SFU ---------------------------------------------------------------------------------------------------------------
def _sfu(operation: Sfu, shape: Dims, result: int, source: int, precision: Precision, **more: int) -> Command:
    fields: Fields = {"tsk_typ": Task.SFU, "tsk_eu_typ": operation, "res0_prec": precision, "opd0_prec": precision}
    fields |= shape_fields(shape) | {"res0_addr": result, "opd0_addr": source}
    return Command(Engine.TIU, SFU, fields | more)


def taylor(shape: Dims, result: int, source: int, series: int, terms: int, precision: Precision) -> Command:
    """Result = sum of series[i] * source**i, i < terms; every lane reads its own row at the offset of `series`.

    The lane of `series` must be that of the source.
    """
    steps = (terms - 1) % 4
    return _sfu(Sfu.TAYLOR, shape, result, source, precision, opd1_addr=series, opd1_n=terms, opd2_n_str=steps)


def exponent(shape: Dims, result: int, source: int, precision: Precision, to: Precision) -> Command:
    """The exponent of a float, rounded up above a mantissa of 4/3: biased as an integer, or as a power of two."""
    return _sfu(Sfu.NORMALIZE, shape, result, source, precision, res0_prec=to, opd2_n_str=3)


def rsqrt(shape: Dims, result: int, source: int, iterations: int = 3) -> Command:
    """Result = 1 / sqrt(source) in fp32, by so many (1 to 4) steps."""
    return _sfu(Sfu.RSQRT, shape, result, source, Precision.FP32, opd1_n=iterations, opd2_n_str=iterations - 1)


# -- TRANS&BC ----------------------------------------------------------------------------------------------------------
def move(
    operation: Trans, shape: Dims, result: int, source: int, precision: Precision, inner: tuple[int, int]
) -> Command:
    """Transpose, copy or broadcast between lanes; `inner` is (c, w) of the source."""
    fields: Fields = {"tsk_typ": Task.TRANSPOSE, "tsk_eu_typ": operation, "res0_prec": precision}
    fields |= shape_fields(shape) | {"opd0_c": inner[0], "opd0_w": inner[1]}
    return Command(Engine.TIU, TRANS, fields | {"res0_addr": result, "opd0_addr": source})


def static_broadcast(result: int, offset: int, lanes: int, words: int, precision: Precision) -> Command:
    """Elements from byte `offset` of static memory on, to the same place of so many lanes."""
    source = CHIP.static_window + offset
    return move(Trans.STATIC_BROADCAST, (1, lanes, 1, words), result, source, precision, (lanes, words))


def static_distribute(result: int, offset: int, words: int, precision: Precision) -> Command:
    """One element of static memory to each lane."""
    source = CHIP.static_window + offset
    return move(Trans.STATIC_DISTRIBUTE, (1, words, 1, 1), result, source, precision, (words, 1))


# -- SG ----------------------------------------------------------------------------------------------------------------
def by_index(
    operation: Gather,
    shape: Dims,
    result: int,
    source: tuple[int, int, bool],
    index: tuple[int, int, Precision],
    precision: Precision,
    last: int | None = None,
) -> Command:
    """Gather from, or scatter, rows of (1, c, 1, w) by indices (n, c, 1, count).

    Args:
        operation: LANE_FAST or SCATTER_LANE_FAST. shape: of the result, h = 1.
        source: address, w, and whether one row per lane serves all channels of that lane.
        index: address, count, UINT8 or UINT16 as INT8 or INT16. result, precision: of the elements.
        last: the bits that index 65535 gives, which no row is long enough for.
    """
    row = Layout.TABLE if source[2] else Layout.ALIGNED
    fields: Fields = {"tsk_typ": Task.GATHER, "tsk_eu_typ": operation, "opd0_str": row, "res0_prec": precision}
    fields |= shape_fields(shape) | {"res0_addr": result, "opd0_prec": precision, "opd0_addr": source[0]}
    fields |= {"opd0_h": 1, "opd0_w": source[1], "opd1_c": shape[1], "opd1_w": index[1]}
    fields |= {} if last is None else {"opd3_const": 1, "opd2_const": 1, "opd2_addr": last}
    return Command(Engine.TIU, SG, fields | {"opd1_addr": index[0], "opd1_prec": index[2]})
