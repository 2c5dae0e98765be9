"""BMNet's C++ classes and its C functions: nets with layers of the program are compiled, and run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from c_programs import SANITIZED, needs_compiler, program, run

import bmcompiler
from bmcompiler.bmnet.c_library import LIBRARY
from bmcompiler.frontends.caffe import caffe_pb2

pytestmark = needs_compiler
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def model(built: Path, net: tuple[Path, ...]) -> Path:
    """What a program as in the manual makes, in C++17 with the builder as a template, and in C++11."""
    made = net[0].with_name("cpp.bmodel")
    for flags in (("-std=c++17", "-DBMNET_BUILDER_TEMPLATES"), ("-std=c++11",)):
        binary = program(built, "bmnet", HERE / "bmnet_elu.cpp", "g++", *flags, "-Wpedantic")
    done = run(binary, *net, made)
    assert done.returncode == 0, (done.returncode, done.stderr.decode()[-3000:])
    return made


def test_layers_of_a_program_run_as_instructions_and_on_the_cpu(
    built: Path, net: tuple[Path, ...], model: Path, tmp_path: Path
) -> None:
    plain = net[0].with_name("plain.prototxt")
    plain.write_text("".join(net[0].read_text().splitlines(keepends=True)[:4]))
    compiled = bmcompiler.compile(plain, net[1], target="bm1880", table=net[2], output=tmp_path / "plain.bmodel")
    data = np.random.default_rng(1).integers(-128, 128, (1, 2, 8, 8)).astype(np.int8)
    sums = compiled.session().run(data, raw=True)["conv"].astype(np.float32) * np.float32(8 / 128)
    assert np.abs(sums).max() > 4 and sums.min() > -8  # -128 would become 127
    wanted = np.where(sums < 0, -sums, 0.25 * (np.exp(-sums) - 1)).ravel()
    binary = program(built, "bmnet bmruntime", HERE / "bmnet_host.c", "gcc", *SANITIZED, "-pthread", "-lm")
    done = run(binary, *net, tmp_path / "c.bmodel", model, given=data.tobytes())
    assert done.returncode == 0, (done.returncode, done.stderr.decode()[-3000:])
    found = np.frombuffer(done.stdout, np.float32).reshape(2, -1)
    assert np.abs(found - wanted).max() < 1e-5


def test_the_schema_of_layers_has_a_class_each() -> None:
    text = LIBRARY.extras()["bmnet_caffe.hpp"]
    for field in caffe_pb2.LayerParameter.DESCRIPTOR.fields:
        assert f" {field.name.lower()}(" in text, field.name
