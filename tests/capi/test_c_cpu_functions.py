"""C functions that run the CPU records of a BM1880 model, as a vendor's plug-ins do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from c_programs import SANITIZED, needs_compiler, program, run

from bmcompiler import bmodel
from bmcompiler.backends.bm1880.cmdbuf import pack_cpu
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command, TensorInfo

pytestmark = needs_compiler
SIZE = 48

PROGRAM = """
#include <libbmruntime/bmruntime.h>
#include <libbmruntime/bmruntime_bmnet.h>
#include <stdio.h>
#include <string.h>
enum { SIZE = 48 };
struct totals { int calls, fail; };
static int mix(void *user, uint8_t *neuron, uint64_t neuron_size, uint8_t *weight, uint64_t weight_size,
               const uint8_t *param, uint64_t param_size)
{
    struct totals *totals = (struct totals *)user;
    int i;
    totals->calls++;
    if (neuron_size < 2 * SIZE || weight_size < 4 || param_size != 3 || memcmp(param, "abc", 3))
        return -1;
    for (i = 0; i < SIZE; i++)
        neuron[SIZE + i] = (uint8_t)(neuron[i] ^ weight[i % 4]);
    return totals->fail;
}
static int other(void *user, uint8_t *neuron, uint64_t neuron_size, uint8_t *weight, uint64_t weight_size,
                 const uint8_t *param, uint64_t param_size)
{
    (void)neuron, (void)neuron_size, (void)weight, (void)weight_size, (void)param, (void)param_size;
    return user != NULL;
}
static int refused(bmerr_t code, bmerr_t wanted, const char *word)
{
    if (code == wanted && strstr(bmcapi_last_error(), word))
        return 1;
    fprintf(stderr, "%d: %s\\n", (int)code, bmcapi_last_error());
    return 0;
}
int main(int argc, char **argv)
{
    struct totals totals = {0, 0};
    uint8_t input[SIZE], output[SIZE];
    bmctx_t ctx;
    bmnet_t net;
    if (argc != 2 || fread(input, 1, SIZE, stdin) != SIZE || bm_init(0, &ctx))
        return 2;
    if (!refused(bmnet_register_cpu_function(NULL, mix, NULL), BM_ERR_INVALID_ARGUMENT, "name is NULL"))
        return 3;
    if (!refused(bmnet_register_cpu_function("Mix", NULL, NULL), BM_ERR_INVALID_ARGUMENT, "function is NULL"))
        return 4;
    if (!refused(bmnet_register_cpu_function("SixteenLettersX.", mix, NULL), BM_ERR_INVALID_ARGUMENT, "1 to 15"))
        return 5;
    if (bmnet_register_cpu_function("Mix", other, NULL) || bmnet_register_cpu_function("Mix", mix, &totals))
        return 6;
    if (bmnet_register_bmodel(ctx, argv[1], &net) || bmnet_set_input_shape(net, shape_t4(1, 3, 4, 4)))
        return 7;
    if (bmnet_inference(net, input, output) || bmnet_inference(net, input, output) || totals.calls != 2)
        return 8;
    fwrite(output, 1, SIZE, stdout);
    totals.fail = 9;
    if (!refused(bmnet_inference(net, input, output), BM_ERR_FAILURE, "'Mix': the function of the program returned 9"))
        return 9;
    bmnet_cleanup(net);
    bm_exit(ctx);
    return 0;
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_a_record_calls_a_function_of_the_program(built: Path, tmp_path: Path, compiler: str) -> None:
    x, y = TensorInfo("x", (1, 3, 4, 4)), TensorInfo("y", (1, 3, 4, 4), offset=SIZE)
    weights = np.array([1, 2, 4, 128], np.uint8)
    command = Command([x], [y], pack_cpu("Mix", b"abc"), 2 * SIZE)
    bmodel.save(Bm1880Model("mixed", [command], [weights.tobytes()]), tmp_path / "mixed.bmodel")
    (tmp_path / "mix.c").write_text(PROGRAM)
    data = np.random.default_rng(0).integers(0, 256, SIZE).astype(np.uint8)
    binary = program(built, "bmruntime", tmp_path / "mix.c", compiler, *(SANITIZED if compiler == "gcc" else ()))
    done = run(binary, tmp_path / "mixed.bmodel", given=data.tobytes())
    assert done.returncode == 0, (done.returncode, done.stderr.decode()[-2000:])
    assert done.stdout == (data ^ np.tile(weights, SIZE // 4)).tobytes()
