"""Launches of a network from C: on memory of the host, and everything that a launch refuses."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest
from c_programs import EXAMPLES, ROOT, SANITIZED, needs_compiler, program, run

import bmcompiler
from bmcompiler import bmodel
from bmcompiler.runtime import Session

BUNDLES = ROOT / "tests" / "data" / "bm1684x_bundles"
LENET = ROOT / "models" / "lenet"
pytestmark = needs_compiler

PROGRAM = """
#include <bmruntime_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int bad;
static void refused(int done, const char *word)
{
    if (done || !strstr(bmcapi_last_error(), word)) {
        bad++;
        printf("%d %s: '%s'\\n", done, word, bmcapi_last_error());
    }
}
int main(int argc, char **argv)
{
    float data[784], own[10];
    void *inputs[1] = {data}, *none[1] = {NULL}, *outputs[1] = {own}, *made[1] = {NULL};
    bm_shape_t shape = {4, {1, 1, 28, 28}}, wrong = {9, {1}}, flat = {2, {1, 784}}, result;
    bm_handle_t handle, handles[1];
    bm_tensor_t tensor, output, broken;
    void *runtime;
    if (argc != 2 || fread(data, 1, sizeof data, stdin) != sizeof data || bm_dev_request(&handle, 0) != BM_SUCCESS)
        return 2;
    runtime = bmrt_create(handle);
    if (!bmrt_load_bmodel(runtime, argv[1]) || !bmrt_tensor(&tensor, runtime, BM_FLOAT32, shape))
        return 3;
    if (!bmrt_launch_data(runtime, "LeNet", inputs, &shape, 1, made, &result, 1, false) || !made[0])
        return 4;
    if (!bmrt_launch_data(runtime, "LeNet", inputs, &shape, 1, outputs, &result, 1, true))
        return 5;
    if (memcmp(own, made[0], sizeof own) || result.num_dims != 2 || result.dims[1] != 10)
        return 6;
    free(made[0]);

    refused(bmrt_create_ex(&handle, 2) != NULL, "num_handles is 2");
    refused(bmrt_create_ex(NULL, 1) != NULL, "bm_handles is NULL");
    handles[0] = (bm_handle_t)runtime;
    refused(bmrt_create_ex(handles, 1) != NULL, "no handle that can be used");
    refused(bmrt_launch_data(NULL, "LeNet", inputs, &shape, 1, outputs, &result, 1, true), "p_bmrt is NULL");
    refused(bmrt_launch_data(handle, "LeNet", inputs, &shape, 1, outputs, &result, 1, true), "p_bmrt is an object");
    refused(bmrt_launch_data(runtime, NULL, inputs, &shape, 1, outputs, &result, 1, true), "net_name is NULL");
    refused(bmrt_launch_data(runtime, "absent", inputs, &shape, 1, outputs, &result, 1, true), "'absent'");
    refused(bmrt_launch_data(runtime, "LeNet", NULL, &shape, 1, outputs, &result, 1, true), "input_datas is NULL");
    refused(bmrt_launch_data(runtime, "LeNet", none, &shape, 1, outputs, &result, 1, true), "a buffer is NULL");
    refused(bmrt_launch_data(runtime, "LeNet", inputs, NULL, 1, outputs, &result, 1, true), "input_shapes is NULL");
    refused(bmrt_launch_data(runtime, "LeNet", inputs, &wrong, 1, outputs, &result, 1, true), "9 dimensions");
    refused(bmrt_launch_data(runtime, "LeNet", inputs, &flat, 1, outputs, &result, 1, true), "takes shapes");
    refused(bmrt_launch_data(runtime, "LeNet", inputs, &shape, 1000000, outputs, &result, 1, true), "has 1 inputs");
    refused(bmrt_launch_data(runtime, "LeNet", inputs, &shape, 1, NULL, &result, 1, true), "output_datas is NULL");
    refused(bmrt_launch_data(runtime, "LeNet", inputs, &shape, 1, none, &result, 1, true), "a buffer is NULL");
    refused(bmrt_launch_data(runtime, "LeNet", inputs, &shape, 1, outputs, NULL, 1, true), "output_shapes is NULL");
    refused(bmrt_launch_data(runtime, "LeNet", inputs, &shape, 1, outputs, &result, -1, true), "has 1 outputs");

    refused(bmrt_launch_tensor(NULL, "LeNet", &tensor, 1, &output, 1), "p_bmrt is NULL");
    refused(bmrt_launch_tensor(runtime, NULL, &tensor, 1, &output, 1), "net_name is NULL");
    refused(bmrt_launch_tensor(runtime, "LeNet", NULL, 1, &output, 1), "input_tensors is NULL");
    refused(bmrt_launch_tensor(runtime, "LeNet", &tensor, 2, &output, 1), "has 1 inputs");
    refused(bmrt_launch_tensor(runtime, "LeNet", &tensor, 1, NULL, 1), "output_tensors is NULL");
    refused(bmrt_launch_tensor(runtime, "LeNet", &tensor, 1, &output, 1 << 30), "has 1 outputs");
    broken = tensor;
    broken.shape.num_dims = -5;
    refused(bmrt_launch_tensor(runtime, "LeNet", &broken, 1, &output, 1), "-5 dimensions");
    broken = tensor;
    broken.dtype = (bm_data_type_t)77;
    refused(bmrt_launch_tensor(runtime, "LeNet", &broken, 1, &output, 1), "data type 77");
    broken = tensor;
    broken.device_mem.u.device.device_addr -= 64;
    refused(bmrt_launch_tensor(runtime, "LeNet", &broken, 1, &output, 1), "not allocated");
    memset(&output, 0xff, sizeof output);
    refused(bmrt_launch_tensor_ex(runtime, "LeNet", &tensor, 1, &output, 1, true, false), "dimensions");
    bm_free_device(handle, tensor.device_mem);
    refused(bmrt_launch_tensor(runtime, "LeNet", &tensor, 1, &output, 1), "freed");
    bmrt_destroy(runtime);
    refused(bmrt_launch_tensor(runtime, "LeNet", &tensor, 1, &output, 1), "was destroyed");
    refused(bmrt_get_network_info(runtime, "LeNet") != NULL, "was destroyed");
    bm_dev_free(handle);
    if (!bad)
        fwrite(own, 1, sizeof own, stdout);
    return bad != 0;
}
"""


# Steps of the vendor's bmrt_test: memory set aside before a model is loaded, cores, threads, a model in device memory.
STEPS = """
#include <bmruntime_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NEED(what) if (!(what)) { fprintf(stderr, "%d: %s\\n", __LINE__, bmcapi_last_error()); exit(1); }
static void set_aside(bm_handle_t handle, memory_t *area)
{
    bm_device_mem_t mem;
    if (!area->size)
        return;
    NEED(area->addr == -1 && !bm_malloc_device_byte(handle, &mem, (unsigned int)area->size));
    area->addr = (int64_t)bm_mem_get_device_addr(mem);
}
int main(int argc, char **argv)
{
    static char file[1 << 22], read[1 << 22];
    float data[784], found[10], again[10];
    bm_handle_t handle;
    bm_device_mem_u64_t whole;
    bm_device_mem_t neuron;
    bm_tensor_t input, output;
    const bm_net_info_t *net;
    unsigned long long place = 0;
    bm_device_mem_t weights;
    mem_info_t needs;
    void *runtime, *other;
    size_t bytes;
    int core = 0, no_core = 1;
    FILE *model = argc == 2 ? fopen(argv[1], "rb") : NULL;
    NEED(model && (bytes = fread(file, 1, sizeof file, model)) > 1000);
    NEED(fread(data, 1, sizeof data, stdin) == sizeof data);
    fclose(model);
    NEED(!bm_dev_request(&handle, 0) && (runtime = bmrt_create_ex(&handle, 1)) && (other = bmrt_create(handle)));
    bmrt_set_flags(runtime, BM_RUNTIME_SHARE_MEM | BM_RUNTIME_FREE_COEFF);
    NEED(bmrt_get_flags(runtime) == 17 && bmrt_get_bmodel_info(argv[1], &needs) && needs.neuron_mem.size > 784 * 4);
    NEED(!bmrt_load_bmodel_with_mem(runtime, argv[1], &needs)); /* nothing is set aside */
    set_aside(handle, &needs.neuron_mem);
    set_aside(handle, &needs.io_mem);
    set_aside(handle, &needs.instruction_mem);
    set_aside(handle, &needs.variable_instruction_mem);
    set_aside(handle, &needs.coeff_mem);
    needs.neuron_mem.size -= 1;
    NEED(!bmrt_load_bmodel_with_mem(runtime, argv[1], &needs) && strstr(bmcapi_last_error(), "neuron_mem"));
    needs.neuron_mem.size += 1;
    needs.coeff_mem.size -= 1;
    NEED(!bmrt_load_bmodel_with_mem(runtime, argv[1], &needs) && strstr(bmcapi_last_error(), "coeff_mem"));
    needs.coeff_mem.size += 1;
    NEED(bmrt_load_bmodel_with_mem(runtime, argv[1], &needs) && (net = bmrt_get_network_info(runtime, "LeNet")));
    weights = bm_mem_from_device((unsigned long long)needs.coeff_mem.addr, (unsigned int)needs.coeff_mem.size);
    NEED(!bm_memcpy_d2s(handle, read, weights));
    while (place + needs.coeff_mem.size <= bytes && memcmp(file + place, read, needs.coeff_mem.size))
        place++;
    NEED(place + needs.coeff_mem.size <= bytes); /* they lie in device memory as in the file */
    NEED(bmrt_get_stage_size(runtime, "LeNet") == 1 && bmrt_get_neuron_number(runtime, "LeNet") == 1);
    neuron = bmrt_get_neuron_memory(runtime, "LeNet", 0, &core, 1);
    NEED((int64_t)bm_mem_get_device_addr(neuron) == needs.neuron_mem.addr);
    NEED(!bm_mem_get_device_size(bmrt_get_neuron_memory(runtime, "LeNet", 1, &core, 1)));
    NEED(!bmrt_tensor_ex(&input, runtime, 1, net->input_dtypes[0], net->stages[0].input_shapes[0]));
    NEED(bmrt_tensor_ex(&input, runtime, 0, net->input_dtypes[0], net->stages[0].input_shapes[0]));
    NEED(bmrt_tensor_ex(&output, runtime, 0, net->output_dtypes[0], net->stages[0].output_shapes[0]));
    NEED(bmrt_get_stage_index(runtime, "LeNet", &input) == 0 && !bm_memcpy_s2d(handle, input.device_mem, data));
    NEED(bmrt_pre_alloc_neuron_multi_cores(runtime, "LeNet", 0, &core, 1));
    NEED(!bmrt_pre_alloc_neuron_multi_cores(runtime, "LeNet", 1, &core, 1));
    NEED(bmrt_launch_tensor_multi_cores(runtime, "LeNet", &input, 1, &output, 1, true, false, &core, 1));
    NEED(!bm_thread_sync_from_core(handle, 0) && !bm_memcpy_d2s_partial(handle, found, output.device_mem, 40));
    NEED(!bmrt_launch_tensor_multi_cores(runtime, "LeNet", &input, 1, &output, 1, true, false, &no_core, 1));
    NEED(!bmrt_launch_tensor_multi_cores(runtime, "LeNet", &input, 1, &output, 1, true, false, NULL, 1 << 30));
    NEED(!bmrt_launch_tensor_multi_thread(runtime, "LeNet", &input, 1, &output, 1, 5, true, false, &core, 1));
    NEED(bmrt_pre_alloc_mem_multi_thread(runtime, 5, &needs) && !bm_memset_device(handle, 0, output.device_mem));
    NEED(bmrt_launch_tensor_multi_thread(runtime, "LeNet", &input, 1, &output, 1, 5, true, false, NULL, 0));
    NEED(!bm_memcpy_d2s_partial(handle, again, output.device_mem, 40) && !memcmp(found, again, 40));
    bmrt_print_network_info(net);
    NEED(!*bmcapi_last_error());
    bmrt_trace(runtime);
    NEED(!bm_malloc_device_byte_u64(handle, &whole, bytes));
    NEED(!bm_mem_mmap_device_mem_no_cache_u64(handle, &whole, &place));
    memcpy((void *)place, file, bytes);
    NEED(bmrt_load_bmodel_in_device(other, (void *)place, bm_mem_get_device_addr_u64(whole), bytes));
    NEED(!bmrt_load_bmodel_in_device(other, (void *)place, bm_mem_get_device_addr_u64(whole), bytes + 1));
    memset(again, 0, sizeof again);
    NEED(bmrt_launch_tensor_multi_cores(other, "LeNet", &input, 1, &output, 1, true, false, NULL, 0));
    NEED(!bm_memcpy_d2s_partial(handle, again, output.device_mem, 40) && !memcmp(found, again, 40));
    NEED(bmrt_get_bmodel_data_info(file, bytes, &needs) && needs.io_mem.addr == -1);
    bmrt_destroy_without_coeff(runtime);
    NEED(bmrt_get_stage_size(runtime, "LeNet") == 0);
    bm_dev_free(handle);
    fwrite(found, 1, sizeof found, stdout);
    return 0;
}
"""


@pytest.fixture(scope="module")
def lenet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = tmp_path_factory.mktemp("models") / "lenet.bmodel"
    bmcompiler.compile(LENET / "deploy.prototxt", LENET / "lenet.caffemodel", target="bm1684").save(model)
    return model


@pytest.mark.parametrize(("text", "name"), [(PROGRAM, "launches"), (STEPS, "steps")], ids=["launches", "steps"])
def test_launches_and_what_they_refuse(built: Path, lenet: Path, tmp_path: Path, text: str, name: str) -> None:
    model, file = lenet, tmp_path / f"{name}_bmrt.c"
    file.write_text(text)
    x = np.random.default_rng(0).random((1, 1, 28, 28), np.float32)
    done = run(program(built, "bmrt", file, "gcc", *SANITIZED), model, given=x.tobytes())
    assert done.returncode == 0, done.stdout.decode(errors="replace") + done.stderr.decode()
    assert b"Traceback" not in done.stderr and b"fault of the library" not in done.stderr
    assert done.stdout == Session(model).run(x)["prob"].tobytes()


@pytest.mark.parametrize(("compiler", "name"), [("gcc", "llama_a_w4f16"), ("g++", "qwen2_a_w8bf16_sample")])
def test_tokens_of_a_bundle(built: Path, tmp_path: Path, compiler: str, name: str) -> None:
    """The vendor's tokens and hidden states, with keys and values written to rows of the caches."""
    whole, static, hidden = (tmp_path / name for name in ("whole.bmodel", "static.bmodel", "hidden"))
    whole.write_bytes(lzma.decompress((BUNDLES / f"{name}.bmodel.xz").read_bytes()))
    bmodel.save(bmodel.load(whole).static_part(), static)
    wanted = np.load(BUNDLES / f"{name}.tokens.npz")
    prompt = [str(token) for token in wanted["prompt"]]
    generate = program(built, "bmrt", EXAMPLES / "bmrt_generate.c", compiler, *SANITIZED)
    done = run(generate, static, hidden, "8", *prompt)
    assert (done.returncode, done.stderr) == (0, b"")
    assert [int(token) for token in done.stdout.split()] == wanted["tokens"].tolist()
    assert hidden.read_bytes() == wanted["hidden"].tobytes()
    if name == "llama_a_w4f16":  # lm_head ends in a dynamic search
        done = run(generate, whole, hidden, "8", *prompt)
        assert done.returncode == 1 and b"cut it with bmnet-tool static" in done.stderr
