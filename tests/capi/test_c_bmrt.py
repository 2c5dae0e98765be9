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


def test_launches_on_host_memory_and_what_they_refuse(built: Path, tmp_path: Path) -> None:
    model, file = tmp_path / "lenet.bmodel", tmp_path / "launches_bmrt.c"
    bmcompiler.compile(LENET / "deploy.prototxt", LENET / "lenet.caffemodel", target="bm1684").save(model)
    file.write_text(PROGRAM)
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
