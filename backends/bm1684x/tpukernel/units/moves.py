"""Further commands of the GDMA: compact tensors, vectors, transposed matrices, broadcasts, selection by mask."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Function as Special
from bmcompiler.backends.bm1684x.codes import Move, Precision
from bmcompiler.backends.bm1684x.instructions import transfers
from bmcompiler.backends.bm1684x.instructions.operands import Command, shape_fields
from bmcompiler.backends.bm1684x.instructions.transfers import Side, address_fields, in_window
from bmcompiler.backends.bm1684x.isa import TENSOR
from bmcompiler.backends.bm1684x.tpukernel.local import compact, continuous, elements_at_once, lane_of
from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Emit, Function, Known, Rule, in_group
from bmcompiler.backends.bm1684x.tpukernel.rules import at_least, computed, integers
from bmcompiler.backends.bm1684x.tpukernel.transfers import side_of
from bmcompiler.backends.bm1684x.tpukernel.types import dim4
from bmcompiler.chip import align_up
from bmcompiler.instructions.isa import Fields
from bmcompiler.instructions.order import Engine

_ADDRESSES = {
    "S2L": "local_addr_t dst_addr, system_addr_t src_addr",
    "L2S": "system_addr_t dst_addr, local_addr_t src_addr",
    "L2L": "local_addr_t dst_addr, local_addr_t src_addr",
    "S2S": "system_addr_t dst_addr, system_addr_t src_addr",
}
_ANY = computed("dtype")


def _dense(a: Arguments, name: str, kind: str, shape: dim4) -> Side:
    """A side without gaps: compact in local memory."""
    address = getattr(a, f"{name}_addr")
    strides = compact(lane_of(address), shape) if kind == "L" else continuous(shape)
    compact_side = Arguments({f"{name}_addr": address, f"{name}_stride": strides})
    return side_of(compact_side, name, kind, shape, a.dtype)


def _compact(way: str, transposed: bool) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        shape = a.dst_shape if transposed else a.shape
        n, c, h, w = shape
        of = dim4(c, n, h, w) if transposed else shape
        sides = _dense(a, "dst", way[2], shape), _dense(a, "src", way[0], of)
        if transposed:
            k.add(transfers.transpose_nc(*sides, a.dtype.precision, alike=True))
        else:
            k.add(transfers.copy_alike(*sides, a.dtype.precision))

    return emit


def _cut(way: str, rows: str, columns: str, width: str, pitch: str, transposed: bool) -> Emit:
    """A matrix, by the names of its sizes, whose rows, or if it is transposed whose columns, are cut into sections."""

    def emit(k: Recorder, a: Arguments) -> None:
        load = way == "S2L"
        local, outer = ("dst", "src") if load else ("src", "dst")
        height, length, wide = (int(getattr(a, name)) if name else 1 for name in (rows, columns, width))
        stored = (length, height) if transposed else (height, length)
        if not transposed or load:
            outside_shape, inside_rows, inside_length = (height, length), *stored
        else:
            outside_shape, inside_rows, inside_length = (length, height), height, length
        sections = -(-inside_length // wide)
        address = getattr(a, f"{local}_addr")
        side_of(a, local, "L", dim4(inside_rows, sections, 1, wide), a.dtype)
        side_of(a, outer, "S", dim4(1, 1, *outside_shape), a.dtype)
        section = align_up(wide, elements_at_once(a.dtype))
        steps = dim4(CHIP.channel_rows(lane_of(address), sections) * section, section, 0, 0)
        inside = Side(in_window(address), dim4(inside_rows, sections, 0, wide), steps)
        step = getattr(a, pitch) if pitch else 0
        outside = Side(getattr(a, f"{outer}_addr"), dim4(0, 0, *outside_shape), dim4(0, 0, step, 0))
        k.add(transfers.matrix(inside, outside, load, a.dtype.precision, transposed))

    return emit


def _broadcast(way: str) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        to = side_of(a, "dst", "L", a.shape, a.dtype)
        of = side_of(a, "src", way[0], a.shape._replace(c=1), a.dtype)
        fields: Fields = {"cmd_type": Move.TENSOR, "data_format": a.dtype.precision, "special_func": Special.BROADCAST}
        for name, side in (("dst", to), ("src", of)):
            fields |= side.fields(name, strides=False)
            if a.dst_stride is not None or a.src_stride is not None:
                fields |= {"stride_enable": 1, f"{name}_n_str": side.strides[0], f"{name}_h_str": side.strides[2]}
        k.add(Command(Engine.GDMA, TENSOR, fields))

    return emit


def _bytes_in_order(k: Recorder, a: Arguments) -> None:
    fields: Fields = {"cmd_type": Move.GENERAL, "data_format": a.dtype.precision, "src_c_str": a.count}
    fields |= address_fields("src", a.src_addr) | address_fields("dst", a.dst_addr)
    k.add(Command(Engine.GDMA, TENSOR, fields))


def _chosen(way: str, move: Move) -> Emit:
    """The elements that a mask chooses, or the places of those that are not 0, in order."""

    def emit(k: Recorder, a: Arguments) -> None:
        given = Arguments({**vars(a), "dtype": a.data_dtype})
        source = side_of(given, "src", way[0], a.shape, a.data_dtype)
        fields: Fields = {"cmd_type": move, "data_format": a.data_dtype.precision, **shape_fields(a.shape, "src")}
        fields |= address_fields("src", source.address) | address_fields("dst", a.dst_addr)
        if move is Move.MASKED_SELECT:
            place = in_window(a.mask_addr) if a.mask_in_lmem else a.mask_addr
            fields |= {"second_format": a.mask_dtype.precision, **address_fields("index", place)}
        else:
            fields |= {"second_format": Precision.INT32, "dst_n_str": a.base_idx}
        k.add(Command(Engine.GDMA, TENSOR, fields))

    return emit


def _compacts(way: str) -> tuple[Function, Function]:
    head = f"({_ADDRESSES[way]}, const dim4 *"
    plain = f"void tpu_gdma_compact_{way}{head}shape, data_type_t dtype)"
    transposed = f"void tpu_gdma_compact_nc_trans_{way}{head}dst_shape, data_type_t dtype)"
    note = "compact in local memory"
    return (
        Function(plain, f"src, {note}", _compact(way, transposed=False), (_ANY,)),
        Function(transposed, f"src(c, n, h, w), {note}", _compact(way, transposed=True), (_ANY,)),
    )


def _vector(way: str) -> Function:
    text = f"void tpu_gdma_vector_{way}({_ADDRESSES[way]}, int len, int len_per_channel, data_type_t dtype)"
    emit = _cut(way, "", "len", "len_per_channel", "", transposed=False)
    return Function(text, "element i: c = i / len_per_channel", emit, (_ANY, at_least(1, "len", "len_per_channel")))


def _transposed(way: str) -> Function:
    local, pitch = ("dst", "src") if way == "S2L" else ("src", "dst")
    width, step = f"{local}_cols_per_channel", f"{pitch}_row_stride"
    sizes = f"int src_rows, int src_cols, int {width}, int {step}, data_type_t dtype"
    emit = _cut(way, "src_rows", "src_cols", width, step, transposed=True)
    long = "src_cols" if way == "S2L" else "src_rows"
    rules = (_ANY, at_least(1, "src_rows", "src_cols", width), _pitch(step, long))
    return Function(f"void tpu_gdma_matrix_trans_{way}({_ADDRESSES[way]}, {sizes})", "transposed(src)", emit, rules)


def _pitch(step: str, long: str) -> Rule:
    return Rule(f"{step} must be at least {long}", lambda a: getattr(a, step) >= getattr(a, long))


def _channels(way: str) -> Function:
    strides = "const dim4 *shape, const dim4 *dst_stride, const dim4 *src_stride, data_type_t dtype"
    left = Rule(
        "c must be at most the number of lanes from that of dst on",
        lambda a: a.shape.c <= CHIP.lanes - lane_of(a.dst_addr),
    )
    dense = Rule(
        "strides of w must be 1",
        lambda a: all(each is None or each.w == 1 for each in (a.dst_stride, a.src_stride)),
    )
    text = f"void tpu_gdma_channel_bcast_{way}({_ADDRESSES[way]}, {strides})"
    return Function(text, "src(n, 0, h, w)", _broadcast(way), (_ANY, left, dense))


_OUTSIDE = {"L": "local_addr_t", "S": "global_addr_t"}


def _choices(way: str) -> tuple[Function, Function]:
    head = f"(global_addr_t dst_addr, {_OUTSIDE[way[0]]} src_addr, "
    types = "const dim4 *shape, data_type_t data_dtype"
    select = f"{head}addr_t mask_addr, int mask_in_lmem, {types}, data_type_t mask_dtype)"
    inside = Rule(
        "mask must be a local address with mask_in_lmem, and none without",
        lambda a: bool(a.mask_in_lmem) == (a.mask_addr < CHIP.lmem_total),
    )
    rules = (computed("data_dtype"), integers("mask_dtype"), inside)
    return (
        Function(f"void tpu_gdma_mask_select_{way}{select}", "the elements of src where the mask is not 0, in order",
                 _chosen(way, Move.MASKED_SELECT), rules),
        Function(f"void tpu_gdma_nonzero_{way}{head}{types}, unsigned int base_idx)",
                 "base_idx + the places of the elements of src that are not 0, in order",
                 _chosen(way, Move.NONZERO), (integers("data_dtype"),)),
    )  # fmt: skip


def _counted(row: Function) -> Function:
    """The same, which gives the number of elements."""

    def emit(k: Recorder, a: Arguments) -> int:
        row.emit(k, a)
        return k.kept()

    text = row.declared.replace("void ", "unsigned int ").replace(f"{row.name}(", f"{row.name}_with_ret(")
    return Function(text, f"{row.formula}; the result is their number, in C only", emit, row.rules)


_COUNT = Rule("count must be at least 1", lambda a: a.count >= 1)
_COPY = f"void tpu_gdma_system_cpy({_ADDRESSES['S2S']}, unsigned int count, data_type_t dtype)"
DRAWN = in_group(
    "Between memories",
    *(one for way in ("S2L", "L2S") for one in _compacts(way)),
    *(_vector(way) for way in ("S2L", "L2S")),
    *(_transposed(way) for way in ("S2L", "L2S")),
    *(_channels(way) for way in ("S2L", "L2L")),
    Function(_COPY, "count elements of src", _bytes_in_order, (_ANY, _COUNT)),
    *(one for way in ("L2S", "S2S") for one in _choices(way)),
    source=Known.DRAWN,
)
ROWS = (*DRAWN, *in_group("Between memories", _counted(_choices("S2S")[0]), source=Known.DESCRIBED))
