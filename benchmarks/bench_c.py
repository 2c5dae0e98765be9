"""What calls from C cost: python benchmarks/bench_c.py [MODEL.bmodel]

Seconds of CPU: the first call of a program (Python and the package are loaded), a plain call, an inference through
`bmnet_inference` in C and in Python on the same BM1880 model (LeNet where none is given; the lowest of 30 rounds).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import bmcompiler
from bmcompiler.capi.build import build
from bmcompiler.runtime import bmruntime as rt

TURNS, ROUNDS, CALLS = 6, 5, 20_000
LENET = Path(__file__).resolve().parents[1] / "models" / "lenet"
PROGRAM = """
#define _POSIX_C_SOURCE 199309L
#include <bmruntime.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
int main(int argc, char **argv)
{
    bmctx_t ctx;
    bmnet_t net;
    bmnet_output_info_t info;
    double begin = now(), best = 1e9;
    int i, round, count = atoi(argv[argc - 1]);
    uint8_t *input, *output;
    if (bm_init(0, &ctx))
        return 1;
    printf("first %.3f\\n", now() - begin);
    if (bmnet_register_bmodel(ctx, argv[1], &net) || bmnet_get_output_info(net, &info))
        return 2;
    input = calloc(1, bmmem_device_size(ctx, bmnet_input_devmem(net)));
    output = calloc(1, info.output_size);
    for (begin = now(), i = 0; i < CALLS; i++)
        bm_get_device(ctx);
    printf("plain %.9f\\n", (now() - begin) / CALLS);
    for (round = 0; round < ROUNDS; round++) {
        for (begin = now(), i = 0; i < count; i++)
            if (bmnet_inference(net, input, output))
                return 3;
        best = (now() - begin) / count < best ? (now() - begin) / count : best;
    }
    printf("inference %.9f\\n", best);
    return 0;
}
"""


def built(folder: Path) -> Path:
    """The C program that measures."""
    build(folder)
    source, program, lib = folder / "cost.c", folder / "cost", folder / "lib"
    source.write_text(PROGRAM)
    command = ["cc", "-O2", f"-DCALLS={CALLS}", f"-DROUNDS={ROUNDS}", source, f"-I{folder / 'include'}", "-o", program]
    subprocess.run([*command, f"-L{lib}", f"-Wl,-rpath,{lib}", "-lbmruntime", "-lbmkernel", "-lbmcapi"], check=True)
    return program


def in_c(program: Path, model: Path, count: int) -> dict[str, float]:
    """Seconds by name."""
    text = subprocess.run([program, model, str(count)], check=True, capture_output=True, text=True).stdout
    return {name: float(value) for name, value in re.findall(r"(\w+) (\S+)", text)}


def in_python(model: Path) -> tuple[float, int]:
    """Seconds of an inference, and how many a round has."""
    ctx = rt.bm_init(0)[1]
    assert ctx is not None
    net = rt.bmnet_register_bmodel(ctx, model)[1]
    assert net is not None
    info = rt.bmnet_get_output_info(net)[1]
    memory = rt.bmnet_input_devmem(net)
    assert info is not None and memory is not None
    given, found = bytes(memory.size), bytearray(info.output_size)
    rt.bmnet_inference(net, given, found)
    begin = time.process_time()
    rt.bmnet_inference(net, given, found)
    count = max(5, int(0.2 / (time.process_time() - begin)))
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.process_time()
        for _ in range(count):
            rt.bmnet_inference(net, given, found)
        best = min(best, (time.process_time() - begin) / count)
    return best, count


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What calls from C cost.")
    parser.add_argument("model", nargs="?", type=Path)
    given = parser.parse_args().model
    with tempfile.TemporaryDirectory() as name:
        model = given or Path(name) / "lenet.bmodel"
        if given is None:
            data = np.random.default_rng(0).random((16, 1, 28, 28), np.float32)
            net = bmcompiler.compile(
                LENET / "deploy.prototxt", LENET / "lenet.caffemodel", target="bm1880", data={"data": data}
            )
            net.save(model)
        program, python, c = built(Path(name)), float("inf"), {"inference": float("inf")}
        for _ in range(TURNS):  # in turn, so that both meet the same load
            once, count = in_python(model)
            again = in_c(program, model, count)
            python, c = min(python, once), again | {"inference": min(c["inference"], again["inference"])}
    print(f"first call {c['first']:.2f} s, plain call {c['plain'] * 1e6:.1f} us")
    print(f"inference {python * 1e6:.0f} us in Python, {c['inference'] * 1e6:.0f} us in C", end="")
    print(f": {100 * (c['inference'] / python - 1):+.1f} %")


if __name__ == "__main__":
    sys.exit(main())
