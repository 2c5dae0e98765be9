"""Sizes that vary, from C: inputs between two programs are filled up, outputs are cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from c_programs import ROOT, SANITIZED, needs_compiler, program, run

import bmcompiler
from bmcompiler.runtime import Session

LENET = (ROOT / "models/lenet/deploy.prototxt", ROOT / "models/lenet/lenet.caffemodel")
SHAPES = "[[{1,4,8},1,28,28]]"
pytestmark = needs_compiler

BMRT = """
#include <bmruntime_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
    static float data[8 * 784], own[80];
    int count = argc == 3 ? atoi(argv[2]) : 0;
    void *inputs[1] = {data}, *outputs[1] = {own};
    bm_shape_t shape = {4, {1, 1, 28, 28}}, result;
    bm_tensor_t tensor, made;
    bm_handle_t handle;
    void *runtime;
    shape.dims[0] = count;
    if (count < 1 || count > 8 || fread(data, 784 * sizeof *data, count, stdin) != (size_t)count)
        return 2;
    if (bm_dev_request(&handle, 0) != BM_SUCCESS)
        return 3;
    runtime = bmrt_create(handle);
    if (!bmrt_load_bmodel(runtime, argv[1]))
        return 4;
    if (!bmrt_launch_data(runtime, "LeNet", inputs, &shape, 1, outputs, &result, 1, true))
        return fprintf(stderr, "%s\\n", bmcapi_last_error()), 5;
    if (result.num_dims != 2 || result.dims[0] != count || result.dims[1] != 10)
        return 6;
    fwrite(own, sizeof *own, 10 * count, stdout);
    if (!bmrt_tensor(&tensor, runtime, BM_FLOAT32, shape))
        return 7;
    bm_memcpy_s2d(handle, tensor.device_mem, data);
    if (!bmrt_launch_tensor(runtime, "LeNet", &tensor, 1, &made, 1))
        return fprintf(stderr, "%s\\n", bmcapi_last_error()), 8;
    if (made.shape.dims[0] != count || bm_mem_get_device_size(made.device_mem) != 40u * count)
        return 9;
    memset(own, 0, sizeof own);
    bm_memcpy_d2s(handle, own, made.device_mem);
    fwrite(own, sizeof *own, 10 * count, stdout);
    shape.dims[0] = 9;
    if (bmrt_launch_data(runtime, "LeNet", inputs, &shape, 1, outputs, &result, 1, true))
        return 10;
    if (!strstr(bmcapi_last_error(), "takes shapes [[8, 1, 28, 28]] or [[4, 1, 28, 28]] or [[1, 1, 28, 28]], not [[9"))
        return fprintf(stderr, "%s\\n", bmcapi_last_error()), 11;
    bmrt_destroy(runtime);
    bm_dev_free(handle);
    return 0;
}
"""

BMNET = """
#include <bmruntime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
    static unsigned char data[8 * 784], own[8 * 40];
    int count = argc == 3 ? atoi(argv[2]) : 0;
    bmnet_output_info_t out;
    bmnet_input_info_t *in;
    bmctx_t ctx;
    bmnet_t net;
    if (count < 1 || count > 8 || fread(data, 784, count, stdin) != (size_t)count || bm_init(0, &ctx) != BM_SUCCESS)
        return 2;
    if (bmnet_register_bmodel(ctx, argv[1], &net) != BM_SUCCESS)
        return 3;
    {
        shape_t shape = shape_t4(count, 1, 28, 28), large = shape_t4(9, 1, 28, 28);
        if (bmnet_set_input_shape(net, large) == BM_SUCCESS || !strstr(bmcapi_last_error(), "no program takes"))
            return 4;
        if (bmnet_set_input_shape(net, shape) != BM_SUCCESS)
            return fprintf(stderr, "%s\\n", bmcapi_last_error()), 5;
    }
    in = bmnet_get_input_info(net);
    if (!in || bmnet_get_output_info(net, &out) != BM_SUCCESS)
        return 6;
    if (in->input_size != (size_t)(784 * count) || out.output_size > sizeof own)
        return 7;
    if (bmnet_inference(net, data, own) != BM_SUCCESS)
        return fprintf(stderr, "%s\\n", bmcapi_last_error()), 8;
    fwrite(own, 1, out.output_size, stdout);
    bmnet_cleanup(net);
    bm_exit(ctx);
    return 0;
}
"""


@pytest.mark.parametrize("target", ["bm1684", "bm1684x"])
def test_batches_between_two_programs_through_bmrt(built: Path, tmp_path: Path, target: str) -> None:
    model, file = tmp_path / "lenet.bmodel", tmp_path / "sizes_bmrt.c"
    bmcompiler.compile(*LENET, target=target, shapes=SHAPES, output=model)
    file.write_text(BMRT)
    launches = program(built, "bmrt", file, "gcc", *SANITIZED)
    x = np.random.default_rng(0).random((8, 1, 28, 28), np.float32)
    one = Session(model)
    for count in (1, 3, 5, 8):
        done = run(launches, model, str(count), given=x[:count].tobytes())
        assert done.returncode == 0 and done.stderr.splitlines() == [done.stderr[:-1]], done.stderr  # the refused 9
        found = np.frombuffer(done.stdout, np.float32).reshape(2, count, 10)
        wanted = np.concatenate([one.run(x[k : k + 1])["prob"] for k in range(count)])
        np.testing.assert_allclose(found[0], wanted, atol=1e-5)
        assert np.array_equal(found[0], found[1])


def test_batches_between_two_programs_through_bmnet(built: Path, tmp_path: Path) -> None:
    model, file = tmp_path / "lenet.bmodel", tmp_path / "sizes_bmnet.c"
    x = np.random.default_rng(0).random((32, 1, 28, 28), np.float32)
    bmcompiler.compile(*LENET, target="bm1880", data=x, shapes=SHAPES, output=model)
    file.write_text(BMNET)
    inference = program(built, "bmruntime", file, "gcc", *SANITIZED)
    session = Session(model)
    device = np.clip(np.floor(x[:8] * 128 / session.inputs[0].threshold + 0.5), -128, 127).astype(np.int8)
    for count in (1, 3, 5, 8):
        done = run(inference, model, str(count), given=device[:count].tobytes())
        assert done.returncode == 0 and done.stderr.splitlines() == [done.stderr[:-1]], done.stderr  # the refused 9
        wanted = [session.run(device[k : k + 1], raw=True)["prob"] for k in range(count)]
        assert done.stdout == np.concatenate(wanted).tobytes()
