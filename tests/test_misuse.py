"""Misuse of the vendors' libraries: every function, every argument, every kind of misuse is refused with a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, is_dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmcompiler import bmnet
from bmcompiler.backends.bm1880 import bmkernel as bk
from bmcompiler.backends.bm1880.bmkernel.prototypes import KERNEL
from bmcompiler.bmnet.prototypes import BMNET
from bmcompiler.capi.api import Api, Prototype, Variable
from bmcompiler.errors import EncodingError, UsageError
from bmcompiler.runtime import bmruntime as rt
from bmcompiler.runtime import dmp_dv as dv
from bmcompiler.runtime.bmdevice import RUNTIME, UNSEEN
from bmcompiler.runtime.dmp_dv.prototypes import DRIVER

Values = dict[str, Any]
UNCHECKED = (*UNSEEN, "pointer_t", "const_pointer_t", "CHIP_VER")
"""Types that the functions themselves look at, or nobody."""
BYTES = 64


@dataclass(frozen=True)
class Library:
    """A library under test: a right value and some ended handles per C type, and what a refused call looks like."""

    api: Api
    function: Callable[[str, Values], Callable[..., Any]]
    good: Callable[[], Values]
    ended: Callable[[str], list[Any]]
    refusal: Callable[[Prototype, Callable[[], Any], pytest.LogCaptureFixture], str]
    """Makes the call; the sentence. Fails the test when the call succeeds."""


def raised(prototype: Prototype, call: Callable[[], Any], log: pytest.LogCaptureFixture) -> str:
    with pytest.raises((EncodingError, UsageError)) as caught:
        call()
    return str(caught.value)


# BMKernel.

SHAPE = bk.shape_t4(1, 32, 4, 4)


def kernel_values() -> Values:
    ctx = bk.bmk1880_register()
    t = bk.bmk1880_tl_prealloc_align(ctx, 0, SHAPE, bk.FMT_I8)
    first = bk.bmk1880_tpu_relu(ctx, bk.bmk1880_relu_param_t(t, t))
    space = bk.global_tensor(0, SHAPE)
    return {
        "ctx_t": ctx,
        "reader_t": ctx,
        "tensor_lmem *": t,
        "op_t": first,
        "shape_t": SHAPE,
        "stride_t": bk.stride_t4(512, 16, 4, 1),
        "tensor_gmem *": space,
        "bmk1880_info_t *": bk.bmk1880_info_t(),
        "params_t": b"",
        "u8 *": bytearray(BYTES),
        "const char *": "name",
    }


def ended_kernel_handles(c_type: str) -> list[Any]:
    gone, kept = bk.bmk1880_register(), bk.bmk1880_register()
    if c_type in ("ctx_t", "reader_t"):
        bk.bmk1880_cleanup(gone)
        return [gone]
    if c_type == "op_t":
        return [kernel_values()["op_t"]]  # of another context
    made = [bk.bmk1880_tl_alloc(one, SHAPE, bk.FMT_I8, bk.CTRL_AL) for one in (gone, kept)]
    made.append(bk.bmk1880_tl_prealloc(kept, 0, SHAPE, bk.FMT_I8))
    for tensor in made[2:0:-1]:
        assert tensor is not None
        bk.bmk1880_tl_free(kept, tensor)
    bk.bmk1880_cleanup(gone)
    return made


# BM Runtime.

NO_FAILURE = {"size_t": 0, "int": 0, "float": 0.0, "u64": 0, "bm_devinfo_t": rt.BmDevInfo(*(0,) * 7)}


def runtime_values() -> Values:
    ctx = rt.bm_init(0)[1]
    assert ctx is not None
    info = rt.BmNetInfo(1, bytes(BYTES), b"", 2 * BYTES, BYTES, BYTES, BYTES)
    shape = rt.BmShape(rt.BmFmt.INT8, (1, BYTES))
    return {
        "bmctx_t": ctx,
        "bmdev_t": rt.bm_get_device(ctx),
        "bmmem_device_t": rt.bmmem_device_alloc_raw(ctx, BYTES),
        "bmnet_t": rt.bmnet_register(ctx, info)[1],
        "bmshape_t *": shape,
        "bmnet_info_t *": info,
        "uint8_t *": bytearray(2 * BYTES),
        "const uint8_t *": bytes(BYTES),
        "shape_t": (1, BYTES, 1, 1),
        "const char *": "absent.bmodel",
    }


def ended_runtime_handles(c_type: str) -> list[Any]:
    exited, unbound, used, far = runtime_values(), runtime_values(), runtime_values(), rt.bm_init(1)[1]
    mem = used["bmmem_device_t"]
    window = rt.bmmem_device_prealloc_raw(used["bmctx_t"], mem, 8, 8)
    rt.bmmem_device_free(used["bmctx_t"], mem)
    rt.bmnet_cleanup(used["bmnet_t"])
    rt.bm_exit(exited["bmctx_t"])
    rt.bm_unbind_device(unbound["bmctx_t"])
    if c_type == "bmctx_t":
        return [exited[c_type]]
    if c_type == "bmdev_t":
        device = rt.bm_device_open(6)[1]
        assert device is not None
        rt.bm_device_close(device)
        return [device]
    if c_type == "bmnet_t":
        return [one[c_type] for one in (exited, unbound, used)]
    assert far is not None and window is not None
    return [mem, window, exited[c_type], unbound[c_type]]


def coded(prototype: Prototype, call: Callable[[], Any], log: pytest.LogCaptureFixture) -> str:
    log.clear()
    outcome = call()
    if prototype.result == "bmerr_t":
        code, *outs = outcome if prototype.outs else (outcome,)
        assert isinstance(code, rt.BmErr) and code != rt.BmErr.SUCCESS and set(outs) <= {None}
    elif not isinstance(outcome, rt.BmErr):
        assert outcome == NO_FAILURE.get(prototype.result)
    return log.text if log.text or outcome != rt.BmErr.NOT_SUPPORTED else "NOT_SUPPORTED"


# The DV driver.


def driver_values() -> Values:
    ctx = dv.dmp_dv_context_create()
    mem = dv.dmp_dv_mem_alloc(ctx, BYTES)
    dv.dmp_dv_mem_map(mem)
    return {
        "dmp_dv_context": ctx,
        "dmp_dv_mem": mem,
        "dmp_dv_cmdlist": dv.dmp_dv_cmdlist_create(ctx),
        "struct dmp_dv_info *": dv.new_info(),
        "struct dmp_dv_cmdraw *": bytes(8),
        "const uint16_t *": np.zeros(256, np.uint16),
        "const void *": np.zeros(256, np.uint16),
        "pointer_t": [0],
        "const_pointer_t": [0],
        "const char *": "text",
    }


def ended_driver_handles(c_type: str) -> list[Any]:
    one = driver_values()
    dv.dmp_dv_cmdlist_release(one["dmp_dv_cmdlist"])
    dv.dmp_dv_mem_release(one["dmp_dv_mem"])
    dv.dmp_dv_context_release(one["dmp_dv_context"])
    return [one[c_type]]


CODES = {
    "errno_t": (22, -1),
    "status_t": (-1,),
    "counter_t": (0,),
    "size_t": (0,),
    "exec_id_t": (-22,),
    "exec_time_t": (-1,),
}


def reported(prototype: Prototype, call: Callable[[], Any], log: pytest.LogCaptureFixture) -> str:
    dv.dmp_dv_set_last_error_message("")
    outcome = call()
    assert outcome in CODES.get(prototype.result, (None,))
    return dv.dmp_dv_get_last_error_message()


# BMNet.


class ALayer(bmnet.Layer):
    def layer_name(self) -> str:
        return "A"

    def dump(self) -> None: ...

    def codegen(self, op: bmnet.TensorOp) -> None: ...


class AnInst(bmnet.TensorFixedInst):
    def inst_name(self) -> str:
        return "A"

    def dump(self) -> None: ...

    def encode(self) -> None: ...


def bmnet_values() -> Values:
    chip = bmnet.BM_CHIP_BM1880
    objects = (
        bmnet.TensorShape([1]),
        bmnet.TGCustomizedParameter(),
        bmnet.TensorOp([(1,)], [(1,)]),
        ALayer(),
        AnInst(),
    )
    builders = (bmnet.Builder(chip), bmnet.CaffeBuilder(chip, None, "absent.caffemodel"))
    names = ("TensorShape", "TGCustomizedParameter", "TensorOp", "Layer", "TensorFixedInst", "Builder", "CaffeBuilder")
    return {
        **{f"this {name}": one for name, one in zip(names, (*objects, *builders))},
        "TensorShape": bmnet.TensorShape([2]),
        "LayerEntry": bmnet.LayerCalibrationParameter("a"),
        "layer_t": ALayer,
        "inst_t": AnInst,
        "CHIP_VER": chip,
        "const char *": "name",
        "path_t": "absent.file",
    }


def method(name: str, values: Values) -> Callable[..., Any]:
    owner, _, member = name.partition("::")
    found = getattr(bmnet, owner) if owner == member else getattr(values[f"this {owner}"], member)
    assert callable(found)
    return found


LIBRARIES = {
    "bmkernel": Library(KERNEL, lambda name, _: getattr(bk, name), kernel_values, ended_kernel_handles, raised),
    "bmruntime": Library(RUNTIME, lambda name, _: getattr(rt, name), runtime_values, ended_runtime_handles, coded),
    "dmp_dv": Library(DRIVER, lambda name, _: getattr(dv, name), driver_values, ended_driver_handles, reported),
    "bmnet": Library(BMNET, method, bmnet_values, lambda c_type: [], raised),
}


def value_of(library: Library, one: Variable, values: Values) -> Any:
    """A right value for a parameter or field."""
    if one.array:
        return [values[one.c_type]] if one.c_type == "shape_t" else (1, BYTES)
    if one.c_type not in values:
        name = one.c_type.removeprefix("const ").rstrip(" *")
        if name in library.api.structs and name.startswith("bmk1880"):
            fields = {part.name: value_of(library, part, values) for part in library.api.structs[name]}
            values[one.c_type] = getattr(bk, name)(**fields)
        else:
            values[one.c_type] = 1
    return values[one.c_type]


def misuses(library: Library, one: Variable, values: Values) -> Iterator[Any]:
    """Wrong values for a parameter or field, those of its fields included."""
    kind = library.api.kind(one)
    if not one.maybe and one.c_type not in UNCHECKED:
        yield None
    yield object()
    if kind.bounds is not None:
        yield from (kind.bounds[0] - 1, kind.bounds[1] + 1, 1.5, "1")
    if one.c_type in HANDLES:
        yield from library.ended(one.c_type)
    name = one.c_type.removeprefix("const ").rstrip(" *")
    right = value_of(library, one, values)
    for field in library.api.structs.get(name, ()):
        if is_dataclass(right) and not isinstance(getattr(type(right), field.name, None), property):
            for wrong in misuses(library, field, dict(values)):
                with suppress(EncodingError):  # refused by the structure itself
                    yield replace(right, **{field.name: wrong})  # type: ignore[type-var]
        elif hasattr(right, "_replace"):
            for wrong in misuses(library, field, dict(values)):
                yield right._replace(**{field.name: wrong})


HANDLES = (
    "ctx_t", "op_t", "tensor_lmem *", "bmctx_t", "bmdev_t", "bmmem_device_t", "bmnet_t",
    "dmp_dv_context", "dmp_dv_mem", "dmp_dv_cmdlist",
)  # fmt: skip


@cache
def walks() -> list[tuple[str, str, str]]:
    return [
        (title, prototype.name, one.name)
        for title, library in LIBRARIES.items()
        for prototype in library.api.functions.values()
        for one in prototype.parameters
        if not one.out and prototype.name != "dmp_dv_set_last_error_message"
    ]


@pytest.mark.parametrize("title", LIBRARIES)
def test_every_misuse_of_every_argument_is_refused(title: str, caplog: pytest.LogCaptureFixture) -> None:
    library, count = LIBRARIES[title], 0
    for _, name, parameter in (one for one in walks() if one[0] == title):
        prototype = library.api.functions[name]
        wanted = next(one for one in prototype.parameters if one.name == parameter)
        values = library.good()
        given = {one.name: value_of(library, one, values) for one in prototype.parameters if not one.out}
        for wrong in misuses(library, wanted, values):
            function = library.function(name, values)
            sentence = library.refusal(prototype, partial(function, **given | {parameter: wrong}), caplog)
            assert wanted.c_type in UNCHECKED or parameter in sentence, (name, parameter, wrong, sentence)
            assert sentence, (name, parameter, wrong)
            count += 1
    assert count > 100


def test_nothing_runs_on_freed_memory(caplog: pytest.LogCaptureFixture) -> None:
    data = bytearray(BYTES)
    for name in ("bmnet_neuron_devmem", "bmnet_weight_devmem"):
        values = runtime_values()
        ctx, net = values["bmctx_t"], values["bmnet_t"]
        assert rt.bmnet_run(net) == rt.BmErr.SUCCESS
        rt.bmmem_device_free(ctx, getattr(rt, name)(net))
        assert rt.bmnet_run(net) == rt.bmnet_inference(net, data, data) == rt.BmErr.INVALID_ARGUMENT
        imported = rt.bmmem_device_alloc_raw(ctx, 2 * BYTES)
        assert imported is not None
        assert rt.bmnet_import_neuron_devmem(net, imported) == rt.BmErr.SUCCESS
        rt.bmmem_device_free(ctx, imported)
        assert rt.bmnet_run(net) == rt.BmErr.INVALID_ARGUMENT
        assert rt.bmnet_load_input(net, data) == rt.bmnet_store_output(net, data) == rt.BmErr.INVALID_ARGUMENT


def test_memory_of_another_device_is_refused() -> None:
    here, there = runtime_values(), rt.bm_init(1)[1]
    assert there is not None
    mem = rt.bmmem_device_alloc_raw(there, 2 * BYTES)
    assert mem is not None
    assert rt.bm_memcpy_s2d(here["bmctx_t"], mem, bytes(2 * BYTES)) == rt.BmErr.INVALID_ARGUMENT
    assert rt.bmnet_import_neuron_devmem(here["bmnet_t"], mem) == rt.BmErr.INVALID_ARGUMENT
    rt.bmmem_device_free(here["bmctx_t"], mem)
    assert rt.bm_memcpy_s2d(there, mem, bytes(2 * BYTES)) == rt.BmErr.SUCCESS


def test_kernel_contexts_end_with_the_runtime_context() -> None:
    ctx = rt.bm_init(0)[1]
    assert ctx is not None
    kernel = rt.bmruntime_bmkernel_create(ctx)[1]
    assert kernel is not None
    rt.bm_exit(ctx)
    assert rt.bmruntime_bmkernel_submit(ctx) == rt.BmErr.UNINITIALIZED
    with pytest.raises(EncodingError, match="bmk1880_parallel_enable: ctx was cleaned up"):
        bk.bmk1880_parallel_enable(kernel)


def test_threads_that_outlive_their_context_get_codes() -> None:
    values = runtime_values()
    ctx, net = values["bmctx_t"], values["bmnet_t"]

    def infer(seed: int) -> set[rt.BmErr]:
        output = bytearray(BYTES)
        return {rt.bmnet_inference(net, bytes(BYTES), output) for _ in range(50)}

    with ThreadPoolExecutor(8) as pool:
        running = [pool.submit(infer, seed) for seed in range(8)]
        rt.bm_exit(ctx)
        codes = set().union(*(one.result() for one in running))
    assert codes <= {rt.BmErr.SUCCESS, rt.BmErr.UNINITIALIZED, rt.BmErr.INVALID_ARGUMENT}
    assert rt.bmnet_run(net) == rt.BmErr.UNINITIALIZED


def test_builder_says_which_file_is_missing(tmp_path: Path) -> None:
    absent = tmp_path / "absent.pb2"
    builder = bmnet.CaffeBuilder(bmnet.BM_CHIP_BM1880, None, absent, None, absent)
    with pytest.raises(UsageError, match=r"absent\.pb2"):
        builder.build(1, 1, 4, 4)
    with pytest.raises(UsageError, match="reads no network"):
        bmnet.Builder(bmnet.BM_CHIP_BM1880).build(1, 1, 4, 4)
