"""What calls from C cost: python benchmarks/bench_c.py [--turns N]

Seconds of CPU: the first call of a program (Python and the package are loaded; by the clock, too), a plain call, and an
inference of LeNet in C and in Python, through `bmnet_inference` (BM1880) and `bmrt_launch_tensor_ex` (BM1684). C and
Python take turns, each in a process of its own with as many calls to warm up; of a turn the lowest round counts, of all
turns the median.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

import bmcompiler
from bmcompiler.capi.build import build
from bmcompiler.runtime import bmlib
from bmcompiler.runtime import bmruntime as rt

WARM, ROUNDS, SECONDS, CALLS = 20, 10, 0.1, 5_000
LENET = Path(__file__).resolve().parents[1] / "models" / "lenet"
CHIPS = "bm1880", "bm1684"
HEAD = """
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double at(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
static double now(void) { return at(CLOCK_PROCESS_CPUTIME_ID); }
#define FIRST(CALL) \\
    double clock = at(CLOCK_MONOTONIC), begin = now(), best, spent; \\
    int i, round; \\
    if (CALL) return 1; \\
    printf("first %.3f\\nclock %.3f\\n", now() - begin, at(CLOCK_MONOTONIC) - clock);
#define MEASURE(NAME, CALL, COUNT) \\
    for (i = 0; i < WARM; i++) \\
        if (CALL) return 3; \\
    for (round = 0, best = 1e9; round < ROUNDS; round++) { \\
        for (begin = now(), i = 0; i < (COUNT); i++) \\
            if (CALL) return 3; \\
        spent = (now() - begin) / (COUNT); \\
        best = spent < best ? spent : best; \\
    } \\
    printf(NAME " %.9f\\n", best);
"""
PROGRAMS = {
    "bm1880": """
#include <bmruntime.h>
int main(int argc, char **argv)
{
    bmctx_t ctx;
    bmnet_t net;
    bmnet_output_info_t info;
    int count = atoi(argv[argc - 1]);
    uint8_t *input, *output;
    FIRST(bm_init(0, &ctx))
    if (bmnet_register_bmodel(ctx, argv[1], &net) || bmnet_get_output_info(net, &info))
        return 2;
    input = calloc(1, bmmem_device_size(ctx, bmnet_input_devmem(net)));
    output = calloc(1, info.output_size);
    MEASURE("plain", !bm_get_device(ctx), CALLS)
    MEASURE("inference", bmnet_inference(net, input, output), count)
    return 0;
}
""",
    "bm1684": """
#include <bmruntime_interface.h>
int main(int argc, char **argv)
{
    bm_handle_t handle;
    int count = atoi(argv[argc - 1]);
    const bm_net_info_t *info;
    bm_tensor_t input, output;
    void *runtime;
    FIRST(bm_dev_request(&handle, 0))
    runtime = bmrt_create(handle);
    if (!bmrt_load_bmodel(runtime, argv[1]))
        return 2;
    info = bmrt_get_network_info(runtime, "LeNet");
    if (!bmrt_tensor(&input, runtime, info->input_dtypes[0], info->stages[0].input_shapes[0]) ||
        !bmrt_tensor(&output, runtime, info->output_dtypes[0], info->stages[0].output_shapes[0]))
        return 2;
    MEASURE("plain", bm_get_devid(handle), CALLS)
    MEASURE("inference", !bmrt_launch_tensor_ex(runtime, "LeNet", &input, 1, &output, 1, true, false), count)
    return 0;
}
""",
}
LIBRARIES = {"bm1880": ("bmruntime", "bmkernel"), "bm1684": ("bmrt", "bmlib")}


def compiled(folder: Path, chip: str) -> tuple[Path, Path]:
    """The C program that measures, and the model."""
    data = np.random.default_rng(0).random((16, 1, 28, 28), np.float32)
    files = LENET / "deploy.prototxt", LENET / "lenet.caffemodel"
    model, source, program = (folder / f"{chip}{ending}" for ending in (".bmodel", ".c", ""))
    bmcompiler.compile(*files, target=chip, data={"data": data}, name="LeNet").save(model)
    source.write_text(HEAD + PROGRAMS[chip])
    numbers = [f"-D{name}={globals()[name]}" for name in ("WARM", "ROUNDS", "CALLS")]
    links = [f"-L{folder / 'lib'}", f"-Wl,-rpath,{folder / 'lib'}", *(f"-l{one}" for one in LIBRARIES[chip])]
    command = ["cc", "-O2", *numbers, source, f"-I{folder / 'include'}", "-o", program, *links, "-lbmcapi"]
    subprocess.run(command, check=True)
    return program, model


def bm1880(model: Path) -> Callable[[], object]:
    """One inference in Python."""
    ctx = rt.bm_init(0)[1]
    assert ctx is not None
    net = rt.bmnet_register_bmodel(ctx, model)[1]
    assert net is not None
    info, memory = rt.bmnet_get_output_info(net)[1], rt.bmnet_input_devmem(net)
    assert info is not None and memory is not None
    given, found = bytes(memory.size), bytearray(info.output_size)
    return lambda: rt.bmnet_inference(net, given, found)


def bm1684(model: Path) -> Callable[[], object]:
    """One inference in Python."""
    runtime = bmlib.bmrt_create(bmlib.bm_dev_request(0)[1])
    assert bmlib.bmrt_load_bmodel(runtime, str(model))
    info = bmlib.bmrt_get_network_info(runtime, "LeNet")
    ins = [bmlib.bmrt_tensor(runtime, info.input_dtypes[0], info.stages[0].input_shapes[0])[1]]
    outs = [bmlib.bmrt_tensor(runtime, info.output_dtypes[0], info.stages[0].output_shapes[0])[1]]
    return lambda: bmlib.bmrt_launch_tensor_ex(runtime, "LeNet", ins, 1, outs, 1, True, False)


def in_python(act: Callable[[], object], count: int) -> float:
    """Seconds of an inference."""
    for _ in range(WARM):
        act()
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.process_time()
        for _ in range(count):
            act()
        best = min(best, (time.process_time() - begin) / count)
    return best


def numbers(*command: object) -> dict[str, float]:
    """What a process measures, by name."""
    text = subprocess.run([str(one) for one in command], check=True, capture_output=True, text=True).stdout
    return {name: float(value) for name, value in re.findall(r"(\w+) (\S+)", text)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What calls from C cost.")
    parser.add_argument("--turns", type=int, default=11)
    parser.add_argument("--python", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    acts = {"bm1880": bm1880, "bm1684": bm1684}
    if given.python:
        chip, model, count = given.python
        print(f"inference {in_python(acts[chip](Path(model)), int(count)):.9f}")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder)
        for chip in CHIPS:
            program, model = compiled(folder, chip)
            count = max(5, int(SECONDS / numbers(program, model, 5)["inference"]))
            python = [sys.executable, __file__, "--python", chip, model, count]
            turns = [(numbers(program, model, count), numbers(*python)) for _ in range(given.turns)]
            c, ours = ({key: median(turn[side][key] for turn in turns) for key in turns[0][side]} for side in (0, 1))
            ratios = sorted(100 * (one["inference"] / other["inference"] - 1) for one, other in turns)
            print(f"{chip}: first call {c['first']:.2f} s ({c['clock']:.2f} by the clock), ", end="")
            print(f"plain call {c['plain'] * 1e6:.1f} us, inference ", end="")
            print(f"{ours['inference'] * 1e6:.0f} us in Python, {c['inference'] * 1e6:.0f} us in C: ", end="")
            print(f"{median(ratios):+.1f} % ({ratios[0]:+.1f} to {ratios[-1]:+.1f} by turns)")


if __name__ == "__main__":
    sys.exit(main())
