"""The C libraries: our C programs, built with gcc and g++, do what Python does; misuse from C gets an answer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from bmcompiler import bmodel
from bmcompiler.backends.bm1880 import bmkernel as bk
from bmcompiler.bmodel import TensorInfo
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command
from bmcompiler.capi.api import Prototype, Variable
from bmcompiler.capi.build import build
from bmcompiler.capi.library import CLibrary, Handles
from bmcompiler.runtime import bmruntime as rt
from bmcompiler.runtime.capi import bmkernel, bmruntime, dmpdv

ROOT = Path(__file__).resolve().parents[2]
API = json.loads((ROOT / "tests" / "data" / "bm1880_api.json").read_text(encoding="utf-8"))
BYTES = 24

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("g++") is None or not sysconfig.get_config_var("Py_ENABLE_SHARED"),
    reason="needs gcc, g++ and a shared libpython",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("capi")
    build(folder, "gcc")
    return folder


def program(built: Path, source: Path, compiler: str = "gcc", *flags: str) -> Path:
    """A C program against the built libraries; as C99, or C++11 where the compiler is g++."""
    language = ["-x", "c", "-std=c99"] if compiler == "gcc" else ["-x", "c++", "-std=c++11"]
    target = built / f"{source.stem}-{compiler}"
    libraries = [
        f"-L{built / 'lib'}",
        f"-Wl,-rpath,{built / 'lib'}",
        "-lbmruntime",
        "-lbmkernel",
        "-ldmpdv",
        "-lbmcapi",
    ]
    command = [compiler, *language, "-Wall", "-Werror", *flags, str(source), f"-I{built / 'include'}"]
    subprocess.run([*command, "-o", str(target), *libraries], check=True)
    return target


def run(*command: Path | str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60, check=False, env=env)


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_kernel_program(built: Path, compiler: str) -> None:
    done = run(program(built, ROOT / "examples" / "c" / "kernel.c", compiler, "-fsanitize=address,undefined"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [str(2 * value) for value in range(-12, 12)]


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_convolution_on_the_dv_driver(built: Path, compiler: str) -> None:
    done = run(program(built, ROOT / "examples" / "c" / "dv_conv.c", compiler, "-fsanitize=address,undefined"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "right\n", "")


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_inference_program_gives_what_python_gives(built: Path, tmp_path: Path, compiler: str) -> None:
    k, shape = bk.bmk1880_register(), (1, 2, 3, 4)
    x = bk.bmk1880_tl_prealloc_align(k, 0, bk.shape_t4(*shape), bk.FMT_I8)
    bk.bmk1880_gdma_load(k, x, 0, bk.CTRL_NEURON)
    bk.bmk1880_tpu_relu(k, bk.bmk1880_relu_param_t(x, x))
    bk.bmk1880_gdma_store(k, x, BYTES, bk.CTRL_NEURON)
    tensors = TensorInfo("x", shape, threshold=1.0), TensorInfo("y", shape, offset=BYTES, threshold=2.0)
    command = Command([tensors[0]], [tensors[1]], bk.bmk1880_acquire_cmdbuf(k), 2 * BYTES, 0)
    model = tmp_path / "relu.bmodel"
    bmodel.save(Bm1880Model("relu", [command], [b""]), model)
    data = np.arange(-12, 12, dtype=np.int8)
    (tmp_path / "in").write_bytes(data.tobytes())
    done = run(
        program(built, ROOT / "examples" / "c" / "inference.c", compiler), model, tmp_path / "in", tmp_path / "out"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "y: 1 x 2 x 3 x 4, threshold 2\n"
    ctx, expected = rt.bm_init(0)[1], bytearray(BYTES)
    assert ctx is not None
    net = rt.bmnet_register_bmodel(ctx, model)[1]
    assert net is not None and rt.bmnet_inference(net, data, expected) == rt.BmErr.SUCCESS
    assert (tmp_path / "out").read_bytes() == bytes(expected) == np.maximum(data, 0).tobytes()


def test_every_function_of_the_vendors_chapters_is_exported(built: Path) -> None:
    names = set()
    for library in ("bmruntime", "bmkernel"):
        text = subprocess.run(
            ["nm", "-D", "--defined-only", built / "lib" / f"lib{library}.so"],
            capture_output=True,
            text=True,
            check=True,
        )
        names |= {line.split()[-1] for line in text.stdout.splitlines()}
    assert set(API["functions"]) <= names


def test_nulls_and_wrong_handles_get_an_answer(built: Path, tmp_path: Path) -> None:
    """Every function with zeros and with handles that nobody gave out; the status is the number of successes."""
    calls = [
        _call(library, one, handle)
        for library in (bmruntime.LIBRARY, bmkernel.LIBRARY, dmpdv.LIBRARY)
        for one in library.prototypes
        for handle in (0, 7)
        if one.parameters and one.name not in ("bmk1880_register", "bm_device_open", "bm_init")
    ]
    body = "\n".join(calls)
    source = tmp_path / "misuse.c"
    includes = "#include <bmruntime.h>\n#include <dmpdv.h>\n#include <stdio.h>\n"
    source.write_text(f"{includes}int main(void) {{\nint bad = 0;\n{body}\nreturn bad;\n}}\n")
    done = run(program(built, source))
    assert (done.returncode, done.stdout) == (0, "")
    assert "Traceback" not in done.stderr and "fault of the library" not in done.stderr


class Thing:
    def __init__(self, reason: str = "") -> None:
        self.reason = reason

    def ended(self) -> str:
        return self.reason


def test_handles_of_living_objects_are_never_forgotten() -> None:
    handles, living = Handles(), Thing()
    first = handles.number(living)
    numbers = {handles.number(Thing("was freed")) for _ in range(10000)}
    assert handles.read(first) is living and handles.number(living) == first and len(numbers) == 10000
    assert len(handles._objects) < 5000 and handles.read(0) is None
    few = Handles(first=1 << 40, most=2)
    old, *new = [few.number(Thing()) for _ in range(3)]
    assert not isinstance(few.read(old), Thing) and all(isinstance(few.read(one), Thing) for one in new)


def _call(library: CLibrary, prototype: Prototype, handle: int) -> str:
    arguments = ", ".join(_argument(library, one, handle) for one in prototype.parameters)
    call = f"{prototype.name}({arguments})"
    result = library.c_type(prototype.result)
    if prototype.result == "void" or result in library.api.structs:
        return f"{call};"
    wrong = "== 0" if prototype.result in ("bmerr_t", "errno_t", "status_t", "exec_id_t") else "!= 0"
    return f'if ({call} {wrong}) {{ bad++; puts("{prototype.name}"); }}'


def _argument(library: CLibrary, one: Variable, handle: int) -> str:
    c_type = library.c_type(one.c_type)
    if one.c_type in ("shape_t", "stride_t"):
        return f"({c_type}){{0}}"
    is_handle = one.c_type in ("ctx_t", "op_t", "tensor_lmem *", "bmctx_t", "bmdev_t", "bmnet_t", "bmmem_device_t")
    is_handle = is_handle or one.c_type in ("dmp_dv_context", "dmp_dv_mem", "dmp_dv_cmdlist")
    return f"({c_type})(uintptr_t){handle}" if is_handle else "0"
