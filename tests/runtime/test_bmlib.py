"""BMLib and BMRuntime from Python: results, and the walk through all misuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bmcompiler
from bmcompiler.capi.api import Api, Prototype, Variable
from bmcompiler.runtime import Session, bmlib
from bmcompiler.runtime.bmlib import BmStatus, bm_device_mem_t, bm_net_info_t, bm_shape_t, bm_tensor_t
from bmcompiler.runtime.bmlib.cards import bm_perf_monitor_t
from bmcompiler.runtime.bmlib.kernels import KernelModule
from bmcompiler.runtime.bmlib.types import BMLIB, BMRT, CPU_FAULT, BmMemType, mem_info_t, memory_t

LENET = Path(__file__).resolve().parents[2] / "models" / "lenet"
BYTES = 64
Values = dict[str, Any]
call: Any = bmlib


def good() -> Values:
    handle = call.bm_dev_request(0)[1]
    memory = call.bm_malloc_device_byte(handle, BYTES)[1]
    shape = bm_shape_t((1, 4))
    tensor = bm_tensor_t(0, shape, memory)
    module = object.__new__(KernelModule)
    module.title, module.entries, module.unloaded = "kernels", {}, False
    return {
        "tpu_kernel_module_t": module,
        "bm_handle_t": handle,
        "runtime_t": call.bmrt_create(handle),
        "bm_device_mem_t": memory,
        "bm_device_mem_t *": memory,
        "void *": bytearray(BYTES),
        "const void *": bytearray(BYTES),
        "const char *": "absent",
        "name_t": "absent",
        "const int *": (1, 4),
        "bm_shape_t": shape,
        "const bm_shape_t *": shape,
        "const bm_tensor_t *": tensor,
        "const bm_tensor_t": [tensor],
        "const bm_shape_t": [shape],
        "handles_t": [handle],
        "buffers_t": [bytes(BYTES)],
        "cores_t": bytes(4),
        **dict.fromkeys(("mem_info_t *", "const mem_info_t *"), mem_info_t(*[memory_t(0, 0)] * 5)),
        "const bm_net_info_t *": object.__new__(bm_net_info_t),
        "char *": "file",
        "bm_perf_monitor_t *": bm_perf_monitor_t(0, 0, 0),
        **{one: [] for one in ("pairs_t", "launches_t")},
        **{one: memory for one in ("sg_device_mem_t", "sg_device_mem_t *")},
        **{one: memory for one in ("bm_device_mem_u64_t", "bm_device_mem_u64_t *")},
        **{one: [None] for one in ("tensors_t", "outputs_t", "shapes_t")},
    }


def ended(c_type: str) -> list[Any]:
    freed, used = good(), good()
    call.bm_dev_free(freed["bm_handle_t"])
    call.bmrt_destroy(used["runtime_t"])
    return {"bm_handle_t": [freed["bm_handle_t"]], "runtime_t": [freed["runtime_t"], used["runtime_t"]]}.get(c_type, [])


def misuses(api: Api, one: Variable) -> Iterator[Any]:
    kind = api.kind(one)
    if not one.maybe:
        yield None
    yield object()
    if kind.bounds is not None:
        yield from (kind.bounds[0] - 1, kind.bounds[1] + 1, 1.5, "1")
    yield from ended(one.c_type)
    if one.c_type == "bm_device_mem_t":
        yield from (bm_device_mem_t(-1, BYTES), bm_device_mem_t(0, 1 << 32), bm_device_mem_t(0, "1"))  # type: ignore[arg-type]
    if one.c_type == "const bm_shape_t":
        yield from ([None], [bm_shape_t(("1",))], [bm_shape_t((1 << 31,))])  # type: ignore[arg-type]
    elif one.array:
        yield from ([None], [object()], [bm_tensor_t(1 << 31, bm_shape_t((1,)), bm_device_mem_t(0, 0))])


def refused(prototype: Prototype, function: Callable[[], Any], log: pytest.LogCaptureFixture) -> str:
    log.clear()
    outcome = function()
    code, *outs = outcome if prototype.outs else (outcome,)
    assert set(outs) <= {None}
    assert (
        code == BmStatus.PARAM
        if prototype.result == "bm_status_t"
        else code in (None, False, 0, -1, BmMemType.INVALID, CPU_FAULT)
    )
    return log.text


@pytest.mark.parametrize("api", [BMLIB, BMRT], ids=["bmlib", "bmrt"])
def test_every_misuse_of_every_argument_is_refused(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    count = 0
    for prototype in api.functions.values():
        given = [one for one in prototype.parameters if not one.out]
        for wanted in given:
            values = good()
            right = {one.name: values.get(one.c_type, 1) for one in given}
            for wrong in misuses(api, wanted) if wanted.c_type != "bmlib_api_dbg_callback" else ():
                function = partial(getattr(call, prototype.name), **right | {wanted.name: wrong})
                assert f"{prototype.name}: {wanted.name}" in refused(prototype, function, caplog)
                count += 1
    assert count > 150


def test_memory_is_what_is_allocated() -> None:
    handle, other = call.bm_dev_request(2)[1], call.bm_dev_request(2)[1]
    code, memory = call.bm_malloc_device_byte(handle, BYTES)
    assert code == BmStatus.SUCCESS and memory.size == BYTES
    data, found = np.arange(BYTES, dtype=np.uint8), np.zeros(BYTES, np.uint8)
    assert call.bm_memcpy_s2d(other, memory, data) == call.bm_memcpy_d2s(handle, found, memory) == BmStatus.SUCCESS
    assert np.array_equal(data, found)
    assert call.bm_memcpy_d2d_byte(handle, memory, 1, memory, 0, 8) == BmStatus.SUCCESS
    assert call.bm_memcpy_d2s_partial_offset(handle, found, memory, 9, 0) == BmStatus.SUCCESS
    assert found[:9].tolist() == [0, *range(8)]
    assert call.bm_memset_device(handle, 0x01020304, memory) == BmStatus.SUCCESS
    assert call.bm_memcpy_d2s(handle, found, memory) == BmStatus.SUCCESS and found.view("<i4")[3] == 0x01020304
    word = np.array([0xC61C], "<u2")
    assert call.bm_memset_device_ext(handle, word, 2, memory) == BmStatus.SUCCESS
    assert call.bm_memcpy_d2s(handle, found, memory) == BmStatus.SUCCESS and set(found.view("<u2")) == {0xC61C}
    for value, mode, size in (
        (word, 0, BYTES),
        (bytes(5), 5, BYTES),
        (word, 4, BYTES),
        (bytes(4), 3, BYTES // 4 * 4 - 2),
    ):
        part = bm_device_mem_t(memory.device_addr, size)
        assert call.bm_memset_device_ext(handle, value, mode, part) == BmStatus.PARAM
    beside = bm_device_mem_t(memory.device_addr + 1, BYTES)
    assert call.bm_memcpy_d2s(handle, found, beside) == BmStatus.PARAM
    assert call.bm_memcpy_s2d(handle, memory, data[:-1]) == BmStatus.PARAM
    assert call.bm_memcpy_d2s(handle, bytes(BYTES), memory) == BmStatus.PARAM
    assert call.bm_malloc_device_byte(handle, (1 << 32) - 1)[0] == BmStatus.NOMEM
    call.bm_dev_free(handle)
    assert call.bm_memcpy_d2s(other, found, memory) == BmStatus.PARAM


def test_freed_addresses_are_the_last_to_be_given_out_again() -> None:
    handle = call.bm_dev_request(5)[1]
    half = 1 << 31
    first = call.bm_malloc_device_byte(handle, 100)[1]
    call.bm_free_device(handle, first)
    second = call.bm_malloc_device_byte(handle, half)[1]
    assert second.device_addr > first.device_addr
    assert call.bm_memcpy_d2s(handle, bytearray(100), first) == BmStatus.PARAM
    assert call.bm_malloc_device_byte(handle, half - 8192)[0] == BmStatus.SUCCESS
    assert call.bm_malloc_device_byte(handle, 8192)[0] == BmStatus.NOMEM
    last, reused = (call.bm_malloc_device_byte(handle, 4096)[1].device_addr for _ in range(2))
    assert last > second.device_addr and reused == first.device_addr
    call.bm_dev_free(handle)


@pytest.fixture(scope="module")
def lenet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("lenet") / "lenet.bmodel"
    bmcompiler.compile(LENET / "deploy.prototxt", LENET / "lenet.caffemodel", target="bm1684").save(file)
    return file


def test_a_network_gives_what_a_session_gives(lenet: Path, caplog: pytest.LogCaptureFixture) -> None:
    handle = call.bm_dev_request(3)[1]
    runtime = call.bmrt_create(handle)
    assert call.bmrt_load_bmodel(runtime, lenet) and not call.bmrt_load_bmodel(runtime, lenet)
    assert "a network 'LeNet' is loaded already" in caplog.text
    again = call.bmrt_create(handle)
    assert call.bmrt_load_bmodel_data(again, lenet.read_bytes(), lenet.stat().st_size)
    assert call.bmrt_get_network_names(runtime) == (None, ["LeNet"])
    info = call.bmrt_get_network_info(runtime, "LeNet")
    assert (info.input_names, info.output_names, info.max_input_bytes) == (("data",), ("prob",), (4 * 784,))
    x = np.random.default_rng(0).random((1, 1, 28, 28), np.float32)
    tensor = call.bmrt_tensor(runtime, 0, bm_shape_t(x.shape))[1]
    assert call.bm_memcpy_s2d(handle, tensor.device_mem, x) == BmStatus.SUCCESS
    outputs: list[Any] = [None]
    assert call.bmrt_launch_tensor(runtime, "LeNet", [tensor], 1, outputs, 1)
    found = np.zeros(10, np.float32)
    assert call.bm_memcpy_d2s(handle, found, outputs[0].device_mem) == BmStatus.SUCCESS
    assert found.tobytes() == Session(lenet).run(x)["prob"].tobytes()
    shapes: list[Any] = [None]
    assert call.bmrt_launch_data(runtime, "LeNet", [x], [bm_shape_t(x.shape)], 1, outputs, shapes, 1, False)
    assert np.array_equal(outputs[0].reshape(-1), found) and shapes == [bm_shape_t((1, 10))]
    given = np.zeros(10, np.float32)
    assert call.bmrt_launch_data(runtime, "LeNet", [x], [bm_shape_t(x.shape)], 1, [given], shapes, 1, True)
    assert np.array_equal(given, found)
    for wrong in ([x[0, 0, 1:], given], [None, given], [x, given[1:]], [x, None], [object(), given]):
        launch = [wrong[0]], [bm_shape_t(x.shape)], 1, [wrong[1]], shapes, 1, True
        assert not call.bmrt_launch_data(runtime, "LeNet", *launch)
    own = bm_tensor_t(0, bm_shape_t((1, 10)), info.stages[0].output_mems[0])
    assert call.bmrt_launch_tensor_ex(runtime, "LeNet", [tensor], 1, [own], 1, True, False)
    assert call.bm_memcpy_d2s(handle, found, own.device_mem) == BmStatus.SUCCESS and found.any()


def test_launches_that_do_not_fit_say_why(lenet: Path, caplog: pytest.LogCaptureFixture) -> None:
    handle = call.bm_dev_request(4)[1]
    runtime = call.bmrt_create(handle)
    assert call.bmrt_load_bmodel(runtime, lenet)
    shape = bm_shape_t((1, 1, 28, 28))
    tensor = call.bmrt_tensor(runtime, 0, shape)[1]
    freed = call.bmrt_tensor(runtime, 0, shape)[1]
    call.bm_free_device(handle, freed.device_mem)
    small = call.bm_malloc_device_byte(handle, 4)[1]
    cases = {
        "has 1 inputs, 2 were given": ([tensor, tensor], [None], False),
        "takes shapes [[1, 1, 28, 28]]": ([bm_tensor_t(0, bm_shape_t((1, 784)), tensor.device_mem)], [None], False),
        "data type 2, the network takes 0": ([bm_tensor_t(2, shape, tensor.device_mem)], [None], False),
        "store mode 2": ([bm_tensor_t(0, shape, tensor.device_mem, 2)], [None], False),
        "not allocated, or were freed": ([freed], [None], False),
        "output 0 has 40 bytes, its memory 4": ([tensor], [bm_tensor_t(0, bm_shape_t((1, 10)), small)], True),
        "output 0 is no tensor": ([tensor], [None], True),
    }
    for sentence, (inputs, outputs, own) in cases.items():
        caplog.clear()
        assert not call.bmrt_launch_tensor_ex(runtime, "LeNet", inputs, len(inputs), outputs, 1, own, False)
        assert sentence in caplog.text
    call.bmrt_destroy(runtime)
    assert not call.bmrt_launch_tensor(runtime, "LeNet", [tensor], 1, [None], 1)


def test_descriptions_of_memory_and_shapes_hold_what_they_were_given() -> None:
    code, count = call.bm_dev_getcount()
    handle = call.bm_dev_request(count - 1)[1]
    assert code == BmStatus.SUCCESS and call.bm_get_devid(handle) == count - 1
    assert call.bm_get_chipid(handle) == (BmStatus.SUCCESS, 0x1686)
    memory = call.bm_mem_from_device(4096, 8)
    assert (call.bm_mem_get_device_addr(memory), call.bm_mem_get_device_size(memory)) == (4096, 8)
    call.bm_mem_set_device_addr(memory, 64)
    call.bm_mem_set_device_size(memory, 16)
    assert memory == bm_device_mem_t(64, 16)
    call.bm_set_device_mem(memory, 32, 128)
    assert memory == bm_device_mem_t(128, 32)
    assert call.bm_mem_null().device_addr == call.BM_MEM_ADDR_NULL
    _, shape = call.bmrt_shape((2, 3, 4), 2)
    assert call.bmrt_shape_count(shape) == 6
    assert call.bmrt_shape_is_same(shape, bm_shape_t((2, 3))) and not call.bmrt_shape_is_same(shape, bm_shape_t((3, 2)))
    assert call.bmrt_tensor_device_size(bm_tensor_t(0, shape, memory)) == 32
    call.bm_dev_free(handle)


def test_a_runtime_knows_its_device_and_lists_its_networks(lenet: Path, caplog: pytest.LogCaptureFixture) -> None:
    handle = call.bm_dev_request(0)[1]
    runtime = call.bmrt_create(handle)
    assert call.bmrt_get_bm_handle(runtime) is handle and call.bmrt_get_network_number(runtime) == 0
    assert call.bmrt_load_bmodel(runtime, str(lenet)) and call.bmrt_get_network_number(runtime) == 1
    with caplog.at_level("INFO", "bmcompiler.runtime"):
        call.bmrt_show_neuron_network(runtime)
    assert "network 0: LeNet" in caplog.text
    call.bmrt_destroy(runtime)
    call.bm_dev_free(handle)


def test_a_freed_module_launches_nothing() -> None:
    values = good()
    assert call.tpu_kernel_free_module(values["bm_handle_t"], values["tpu_kernel_module_t"]) == BmStatus.SUCCESS
    assert values["tpu_kernel_module_t"].unloaded


def test_another_address_leaves_what_kind_of_memory_it_is() -> None:
    """As the vendor's library, which was asked (bmlib of tpu-mlir 1.30.2)."""
    device, system = bmlib.bm_mem_from_device(0x1000, 16), bmlib.bm_mem_from_system(0x77)
    bmlib.bm_mem_set_system_addr(device, 0x1234)
    bmlib.bm_mem_set_device_addr(system, 0x55)
    assert [bmlib.bm_mem_get_type(one) for one in (device, system)] == [0, 2]
    assert (bmlib.bm_mem_get_system_addr(device), bmlib.bm_mem_get_device_addr(system)) == (0x1234, 0x55)
