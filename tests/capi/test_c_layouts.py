"""Structures as the vendors' headers have them: in the table, in C, in ctypes; programs of both SDKs run unharmed."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_programs import ROOT, SANITIZED, STRICT, VALGRIND, needs_compiler, run

import bmcompiler
from bmcompiler.backends.dv.driver import structs
from bmcompiler.capi.build import LIBRARIES, SDKS, build, library_for
from bmcompiler.capi.layouts import assertions, layouts
from bmcompiler.capi.source import source
from bmcompiler.errors import UsageError
from bmcompiler.runtime import Session

LENET = (ROOT / "models/lenet/deploy.prototxt", ROOT / "models/lenet/lenet.caffemodel")
both = pytest.mark.parametrize("sdk", SDKS)


@both
@pytest.mark.parametrize("name", LIBRARIES)
def test_every_structure_of_a_library_is_in_the_table(name: str, sdk: str) -> None:
    library = library_for(name, sdk)
    table = layouts(library.registered)
    for structure in library.api.structs:
        layout, wanted = library.layout(structure), table[structure]
        found = {field: getattr(layout, field).offset for field, _ in layout._fields_}
        assert ctypes.sizeof(layout) == wanted.size, structure
        assert {field.rpartition(".")[2]: offset for field, offset in wanted.offsets.items()} == found, structure


def test_every_structure_of_the_dv_driver_is_in_the_table() -> None:
    table = layouts("dmpdv")
    for kind in (structs.INFO, structs.INFO_V0, structs.CMDRAW, structs.CONV_RUN, *structs.LAYOUTS.values()):
        assert kind.fields is not None
        found = {name: entry[1] for name, entry in kind.fields.items()}
        assert found in [one.offsets for one in table.values() if one.size == kind.itemsize]


def test_the_sdks_differ_where_they_are_said_to() -> None:
    new, old = layouts("bmruntime"), layouts("bmruntime-1.0.3")
    assert {name for name in new if new[name] != old[name]} == {"bmnet_output_info_t"}
    assert (new["bmnet_output_info_t"].size, old["bmnet_output_info_t"].size) == (56, 40)
    assert library_for("bmkernel", "1.0.3") is library_for("bmkernel")


@needs_compiler
def test_another_layout_does_not_compile(built: Path) -> None:
    wrong = layouts("bmruntime")["bmnet_output_info_t"]
    text = source(library_for("bmruntime"), "a.module:NAME")
    assert assertions("bmruntime") in text
    for old, new in ((f"== {wrong.size}, ", "== 40, "), ("output_num) == 8", "output_num) == 4")):
        line = next(one for one in text.splitlines() if "(bmnet_output_info_t" in one and old in one)
        command = ["gcc", "-x", "c", "-std=gnu99", f"-I{built / 'include'}", "-fsyntax-only", "-"]
        given = text.replace(line, line.replace(old, new))
        done = subprocess.run(command, input=given, text=True, capture_output=True, check=False)
        assert done.returncode != 0 and "bmnet_output_info_t" in done.stderr


def test_unknown_sdks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"SDK 2\.0 are not known.*1\.1\.4, 1\.0\.3"):
        build(tmp_path, sdk="2.0")


# A program as it was built with the vendor's headers: structures of its own, between canaries, and names of functions.
PROGRAM = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct { uint32_t dim, n, c, h, w; } shape_t;
typedef struct {
    size_t output_size, output_num;
    char **name_array;
    shape_t *shape_array;
    float *threshold_array;
#if SDK >= 114
    size_t *size_array;
    uint32_t *fmt_array;
#endif
} output_info;
typedef struct { size_t size, num; shape_t *shapes; float *thresholds; size_t *sizes; uint32_t *fmts; } input_info;
typedef struct { char *net_name; uint32_t chip, command_num; input_info *inputs; output_info *outputs; } model_info;
typedef struct { uint32_t version, npu_num, eu_num, lmem_size, lmem_banks, lmem_bank_size; } chip_info;
typedef struct { uint64_t before; output_info it; uint64_t behind; } guarded_info;
typedef struct { uint64_t before; chip_info it[8]; uint64_t behind; } guarded_chips;
uint32_t bm_init(int, void **), bmnet_register_bmodel(void *, const char *, void **);
uint32_t bmnet_set_input_shape(void *, shape_t), bmnet_get_output_info(void *, output_info *);
uint32_t bmnet_inference(void *, uint8_t *, uint8_t *), bmnet_load_part_input(void *, uint8_t *, size_t);
uint32_t bmnet_load_input(void *, uint8_t *), bmnet_run(void *), bmnet_store_output(void *, uint8_t *);
void bm_enum_devices(int *, chip_info *), bmnet_cleanup(void *), bm_exit(void *);
chip_info bm_device_get_info(void *);
void *bm_get_device(void *);
uint64_t bm_device_get_gmem_size(void *);
model_info *bmnet_get_model_info(void *);
#define CANARY 0x5eed5eed5eed5eedull
int main(int argc, char **argv)
{
    uint8_t *data = (uint8_t *)malloc(784), first[40], second[40];
    shape_t shape = {4, 1, 1, 28, 28};
    guarded_info info;
    guarded_chips chips;
    chip_info one;
    model_info *model;
    void *ctx, *net;
    int count = -1;
    memset(&info, 0xff, sizeof info); /* the upper half of numbers is not the caller's to clear */
    memset(&chips, 0xff, sizeof chips);
    info.before = info.behind = chips.before = chips.behind = CANARY;
    if (argc != 2 || fread(data, 1, 784, stdin) != 784 || bm_init(0, &ctx) || bmnet_register_bmodel(ctx, argv[1], &net))
        return 2;
    bm_enum_devices(&count, chips.it);
    if (count != 8 || chips.before != CANARY || chips.behind != CANARY || chips.it[7].lmem_bank_size != 8192)
        return 3;
    one = bm_device_get_info(bm_get_device(ctx));
    if (one.version != 1880 || memcmp(&one, &chips.it[0], sizeof one))
        return 4;
    if (bm_device_get_gmem_size(bm_get_device(ctx)) != 1ull << 32)
        return 5;
    if (bmnet_set_input_shape(net, shape) || bmnet_get_output_info(net, &info.it))
        return 6;
    if (info.before != CANARY || info.behind != CANARY || info.it.output_num != 1 || info.it.output_size != 40)
        return 7;
    if (strcmp(info.it.name_array[0], "prob") || info.it.shape_array[0].c != 10 || info.it.threshold_array[0] < 0)
        return 8;
#if SDK >= 114
    if (info.it.size_array[0] != 40 || info.it.fmt_array[0] != 0)
        return 9;
#endif
    model = bmnet_get_model_info(net);
    if (!model || strcmp(model->net_name, "LeNet") || model->chip != 1880 || model->command_num != 1)
        return 10;
    if (model->inputs[0].size != 784 || model->outputs[0].output_size != 40 || model->outputs[0].output_num != 1)
        return 11;
    if (bmnet_inference(net, data, first))
        return 12;
    memset(second, 0, sizeof second);
    data[0] ^= 1; /* the last 784 - 1 bytes stay what bmnet_inference has left */
    if (bmnet_load_part_input(net, data, 1) || bmnet_run(net) || bmnet_store_output(net, second))
        return 13;
    data[0] ^= 1;
    if (bmnet_load_part_input(net, data, 785) == 0 || bmnet_load_part_input(net, data, 1) || bmnet_run(net))
        return 14;
    if (bmnet_store_output(net, second) || memcmp(first, second, sizeof first))
        return 15;
    fwrite(first, 1, sizeof first, stdout);
    bmnet_cleanup(net);
    bm_exit(ctx);
    free(data);
    return 0;
}
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, bytes]:
    """A model, an input for it, and what comes out."""
    model = tmp_path_factory.mktemp("models") / "lenet.bmodel"
    x = np.random.default_rng(0).random((32, 1, 28, 28), np.float32)
    bmcompiler.compile(*LENET, target="bm1880", data=x, output=model)
    session = Session(model)
    data = np.clip(np.floor(x[:1] * 128 / session.inputs[0].threshold + 0.5), -128, 127).astype(np.int8)
    return model, data.tobytes(), session.run(data, raw=True)["prob"].tobytes()


def without_headers(folder: Path, text: str, libraries: tuple[str, ...], *flags: str) -> Path:
    """A program as users of the vendors' libraries have it: no header of ours was there, and no library of ours.

    It was linked with what has the vendors' names, without a version, and exports the same functions.
    """
    names = sorted(set(re.findall(r"\b((?:bm|sg_|dmp_)\w+)\(", text)))
    stand_in = "".join(f"void {one}(void) {{}}\n" for one in names)
    for one in libraries:
        made = "-shared", "-fPIC", f"-Wl,-soname,lib{one}.so", "-o", folder / f"lib{one}.so"
        subprocess.run(["gcc", *made, "-x", "c", "-"], input=stand_in, text=True, check=True)
    links = f"-L{folder}", "-Wl,--no-as-needed", *(f"-l{one}" for one in libraries)
    command = ["gcc", *STRICT, "-std=c99", *flags, "-x", "c", "-", "-o", folder / "vendor", *links]
    subprocess.run(command, input=text, text=True, check=True)
    return folder / "vendor"


def vendors_program(folder: Path, sdk: str, *flags: str) -> tuple[Path, dict[str, str]]:
    """The program of users of that SDK, and the variable with which it finds the libraries."""
    build(folder / "capi", "gcc", sdk)
    binary = without_headers(folder, PROGRAM, ("bmruntime",), *flags, f"-DSDK={sdk.replace('.', '')}")
    return binary, {"LD_LIBRARY_PATH": str(folder / "capi" / "lib")}


@needs_compiler
@both
def test_a_program_built_with_the_vendors_headers(models: tuple[Path, bytes, bytes], tmp_path: Path, sdk: str) -> None:
    model, data, wanted = models
    binary, where = vendors_program(tmp_path, sdk, *SANITIZED)
    done = run(binary, model, given=data, **where)
    assert (done.returncode, done.stdout) == (0, wanted), done.stderr.decode()[-2000:]


@needs_compiler
@pytest.mark.sweep
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
@both
def test_the_same_under_valgrind(models: tuple[Path, bytes, bytes], tmp_path: Path, sdk: str) -> None:
    model, data, wanted = models
    binary, where = vendors_program(tmp_path, sdk, "-g")
    where |= {"PYTHONMALLOC": "malloc", "OPENBLAS_NUM_THREADS": "1"}
    done = run(*VALGRIND, binary, model, given=data, timeout=3000, **where)
    assert (done.returncode, done.stdout) == (0, wanted), done.stderr.decode()[-4000:]


# Others: each call may fill as many bytes as the vendor's structure has; what lies around them is looked at.
OTHERS = """
#include <stdint.h>
#include <string.h>
typedef struct { int num_dims, dims[8]; } shape;
typedef struct { uint64_t address; uint32_t reserved, dmabuf_fd, flags, size; } memory;
int bm_dev_request(void **, int), bm_get_misc_info(void *, void *), bm_get_stat(void *, void *);
int bm_get_profile(void *, void *), bm_get_gmem_heap_stat_byte_by_id(void *, void *, unsigned);
int bm_malloc_device_byte(void *, void *, unsigned), sg_malloc_device_byte(void *, void *, unsigned long long);
int bm_get_status(void *, void *), bm_get_card_num(void *), bm_get_board_name(void *, void *);
void *bmrt_create(void *), bmrt_destroy(void *), bmrt_shape(void *, const int *, int), bm_dev_free(void *);
void bm_free_device(void *, memory);
_Bool bmrt_tensor(void *, void *, int, shape);
void *dmp_dv_context_create(void);
int dmp_dv_context_get_info(void *, void *), dmp_dv_context_release(void *);
static uint8_t room[4096], *const at = room + 1024;
#define FILLS(SIZE, CALL) \\
    memset(room, 0xa5, sizeof room); \\
    memset(at, 0xff, SIZE); \\
    if (CALL) return __LINE__; \\
    for (k = 0; k < sizeof room; k++) \\
        if (room[k] != 0xa5 && (k < 1024 || k >= 1024 + SIZE)) return __LINE__;
#define HAS(TYPE, PLACE, VALUE) if (*(TYPE *)(at + PLACE) != VALUE) return __LINE__;
int main(void)
{
    const int sizes[] = {2, 3, 4};
    shape three = {3, {2, 3, 4}};
    memory found;
    void *handle, *runtime, *context;
    unsigned k;
    if (bm_dev_request(&handle, 0) || !(runtime = bmrt_create(handle)) || !(context = dmp_dv_context_create()))
        return 2;
    FILLS(80, bm_get_misc_info(handle, at)) HAS(uint32_t, 40, 0x1686) HAS(uint32_t, 72, 0)
    FILLS(64, bm_get_stat(handle, at)) HAS(int32_t, 0, 4096) HAS(int32_t, 12, 3)
    FILLS(56, bm_get_profile(handle, at)) HAS(uint64_t, 48, 0)
    FILLS(40, bm_get_gmem_heap_stat_byte_by_id(handle, at, 0)) HAS(uint64_t, 8, 1ull << 32)
    FILLS(32, sg_malloc_device_byte(handle, at, 100)) HAS(uint64_t, 24, 100)
    FILLS(24, bm_malloc_device_byte(handle, at, 100)) HAS(uint32_t, 20, 100)
    memcpy(&found, at, sizeof found);
    bm_free_device(handle, found);
    FILLS(4, bm_get_status(handle, at)) HAS(int32_t, 0, 0)
    FILLS(4, bm_get_card_num(at)) HAS(int32_t, 0, 8)
    FILLS(9, bm_get_board_name(handle, at)) HAS(uint8_t, 8, 0)
    FILLS(36, (bmrt_shape(at, sizes, 3), 0)) HAS(int32_t, 0, 3) HAS(int32_t, 12, 4)
    FILLS(72, !bmrt_tensor(at, runtime, 0, three)) HAS(int32_t, 16, 4) HAS(uint32_t, 60, 96)
    memset(room, 0xa5, sizeof room);
    *(uint32_t *)at = 32, *(uint32_t *)(at + 4) = 0;
    if (dmp_dv_context_get_info(context, at) || at[32] != 0xa5 || room[1023] != 0xa5)
        return 3;
    HAS(uint32_t, 0, 32) HAS(uint32_t, 8, (640 << 10))
    dmp_dv_context_release(context);
    bmrt_destroy(runtime);
    bm_dev_free(handle);
    return 0;
}
"""


@needs_compiler
def test_other_libraries_fill_no_more_than_the_vendors_structures(built: Path, tmp_path: Path) -> None:
    binary = without_headers(tmp_path, OTHERS, ("bmrt", "bmlib", "dmpdv"), *SANITIZED)
    done = run(binary, LD_LIBRARY_PATH=str(built / "lib"))
    assert done.returncode == 0, (done.returncode, done.stderr.decode()[-2000:])
