"""Sessions on boards: our own libraries stand in for the vendor's, as do some that fail."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_programs import ROOT, needs_compiler

import bmcompiler
from bmcompiler.capi.layouts import layouts
from bmcompiler.errors import RuntimeUseError, UnsupportedError
from bmcompiler.runtime import Session, bmlib
from bmcompiler.runtime.bm168x_board import LIBRARIES, VendorMemory, VendorShape, VendorTensor

NET = ROOT / "models" / "resnet8" / "resnet8_mnist.onnx"
SHAPE = (1, 1, 28, 28)

FAILING = """
#include <stdio.h>
int CODE_OF_REQUEST;
static void note(const char *what) { FILE *log = fopen("LOG", "a"); fprintf(log, "%s\\n", what); fclose(log); }
int bm_dev_request(void **handle, int index) { note("request"); *handle = &CODE_OF_REQUEST; return index == 3 ? 1 : 0; }
int bm_get_chipid(void *handle, unsigned *id) { note("chip"); *id = handle ? 0x1684 : 0; return 0; }
void bm_dev_free(void *handle) { note(handle ? "free" : "free of nothing"); }
void *bmrt_create(void *handle) { note("create"); return handle; }
int bmrt_load_bmodel_data(void *runtime, const void *data, unsigned long size) { note("load"); return !runtime; }
int bmrt_launch_tensor_ex(void) { return 0; }
void bmrt_destroy(void *runtime) { note(runtime ? "destroy" : "destroy of nothing"); }
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("board") / "net.bmodel"
    bmcompiler.compile(NET, target="bm1684x", output=file)
    return file


def test_structures_are_the_vendors() -> None:
    table = layouts("bmrt")
    for kind, name in ((VendorMemory, "bm_device_mem_t"), (VendorShape, "bm_shape_t"), (VendorTensor, "bm_tensor_t")):
        assert ctypes.sizeof(kind) == table[name].size
        fields = {title.rpartition(".")[2]: offset for title, offset in table[name].offsets.items()}
        assert {title: getattr(kind, title).offset for title, *_ in kind._fields_} == fields


@needs_compiler
def test_a_session_on_a_board_gives_what_the_library_computes(
    built: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIBRARIES, str(built / "lib"))
    x = np.random.default_rng(0).random((2, *SHAPE[1:]), np.float32)
    handle = bmlib.bm_dev_request(0)[1]  # type: ignore[attr-defined]
    wanted, before = Session(model).run(x), handle.card.room()
    with Session(model, "board:0") as session:
        found = session.run(x)
        assert handle.card.room() != before
    del session
    assert handle.card.room() == before  # all memory is given back
    for name, values in wanted.items():
        assert np.array_equal(found[name], values)


@needs_compiler
def test_libraries_that_fail_are_quoted_and_left(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    text = FAILING.replace("LOG", str(log))
    for name in ("libbmlib.so", "libbmrt.so"):
        command = ["gcc", "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", tmp_path / name]
        subprocess.run(command, input=text, text=True, check=True)
    monkeypatch.setenv(LIBRARIES, str(tmp_path))
    with pytest.raises(UnsupportedError, match="board 0 has the chip 0x1684, not a bm1684x"):
        Session(model, "board:0")
    with pytest.raises(RuntimeUseError, match="bm_dev_request fails with code 1"):
        Session(model, "board:3")
    small = bmcompiler.compile(NET, target="bm1684").model
    with pytest.raises(RuntimeUseError, match="does not take the model"):
        Session(small, "board:1")
    calls = "request chip free", "request", "request chip create load destroy free"
    assert log.read_text().split() == " ".join(calls).split()


def test_places_that_are_none(model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(LIBRARIES, str(tmp_path))
    with pytest.raises(UnsupportedError, match=r"vendor's libbmlib\.so, which cannot be opened"):
        Session(model, "board:0")
    for wrong in ("card:0", "sim:x", "", "board:1:2"):
        with pytest.raises(RuntimeUseError, match="is no device"):
            Session(model, wrong)
    with pytest.raises(RuntimeUseError, match="no device 8"):
        Session(model, "sim:8")
    x = np.zeros(SHAPE, np.float32)
    assert all(
        np.array_equal(a, b) for a, b in zip(Session(model, "sim:1").run(x).values(), Session(model).run(x).values())
    )
