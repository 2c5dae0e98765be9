"""Programs: modes, tensors, recording in place, several at once, what a compiled one does and why one cannot be."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from bmcompiler import bmlang
from bmcompiler.bmlang import (
    BOTH,
    COEFF_TENSOR,
    COMPILE_TPU,
    COMPUTE_CPU,
    FLOAT32,
    INT8,
    INT32,
    UNKNOWN_MODE,
    ActiveType,
    BmLangMode,
    DataType,
    Scalar,
    Tensor,
    UserCpuParam,
)
from bmcompiler.cli.opt import cli as opt
from bmcompiler.cli.run import cli as run
from bmcompiler.errors import BMError, UnsupportedError, UsageError
from bmcompiler.files.mlir import save_module
from bmcompiler.runtime import Session


def noise(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


# -- modes and programs ------------------------------------------------------------------------------------------------
def test_the_mode_stays_once_an_operator_ran() -> None:
    with bmlang.init(COMPUTE_CPU, "BM1684"):
        bmlang.set_mode(BOTH)
        bmlang.copy(Tensor(data=[1.0]))
        with pytest.raises(UsageError, match="the mode cannot change after the first operator"):
            bmlang.set_mode(COMPUTE_CPU)
    with pytest.raises(UsageError, match="COMPUTE_CPU, COMPILE_TPU or BOTH"):
        bmlang.init(UNKNOWN_MODE)
    with pytest.raises(UsageError, match="knows no chip 'BM1'"):
        bmlang.init(BOTH, "BM1")


def test_there_is_no_program_before_init_and_after_deinit() -> None:
    with pytest.raises(UsageError, match=r"there is no BMLang program\. Remedy: call bmlang\.init"):
        bmlang.copy(Tensor(data=[1.0]))
    bmlang.init(COMPUTE_CPU, "BM1684")
    bmlang.copy(Tensor(data=[1.0]))
    bmlang.deinit()
    with pytest.raises(UsageError, match="there is no BMLang program"):
        bmlang.current()
    bmlang.deinit()


def test_programs_nest() -> None:
    with bmlang.init(COMPUTE_CPU, "BM1684") as outer:
        with bmlang.init(BOTH, "BM1682") as inner:
            assert bmlang.current() is inner
        assert bmlang.current() is outer
        with inner:
            assert bmlang.current() is inner
        assert bmlang.current() is outer


def test_programs_end_in_any_order() -> None:
    first, second = bmlang.init(COMPUTE_CPU, "BM1684"), bmlang.init(COMPUTE_CPU, "BM1684")
    first.deinit()
    assert bmlang.current() is second
    first.deinit()
    second.deinit()
    with pytest.raises(UsageError, match="there is no BMLang program"):
        bmlang.current()


def test_threads_have_programs_of_their_own(tmp_path: Path) -> None:
    errors: list[str] = []

    def work(number: int) -> None:
        try:
            with bmlang.init(BOTH, "BM1684", tmp_path / str(number)) as program:
                x = Tensor("x", data=noise(2, 3, seed=number))
                y = x
                for _ in range(number + 2):
                    y = bmlang.muls(y, 2.0)
                made = program.compile_with_check("net", [x], [y])
                if not np.array_equal(y.get_data(), x.get_data() * 2.0 ** (number + 2)) or made.host:
                    errors.append(f"{number} is wrong")
        except Exception as error:
            errors.append(repr(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_recording_is_quick() -> None:
    with bmlang.init(COMPILE_TPU, "BM1684"):
        x, y = Tensor("x", FLOAT32, 1, 8, 16, 16), Tensor("y", FLOAT32, 1, 8, 16, 16)
        start = time.process_time()
        for _ in range(1250):
            bmlang.add(x, y, x)
            bmlang.muls(x, 0.5, x)
            bmlang.max(x, y, x)
            bmlang.active(x, x, ActiveType.ACTIVE_RELU)
        assert time.process_time() - start < 2


# -- recording ---------------------------------------------------------------------------------------------------------
def test_a_tensor_may_be_input_and_output(tmp_path: Path) -> None:
    with bmlang.init(BOTH, "BM1684", tmp_path) as program:
        given = noise(2, 3, 4, 5)
        m, c = Tensor("m", data=given), Tensor("c", FLOAT32, COEFF_TENSOR, [1, 3, 1, 1], data=[2, 3, 4])
        bmlang.mul(m, c, m)
        bmlang.max(m, c, m)
        made = program.compile_with_check("net", [m], [m])
        want = np.maximum(given * np.reshape([2, 3, 4], (1, 3, 1, 1)), np.reshape([2, 3, 4], (1, 3, 1, 1)))
        np.testing.assert_array_equal(m.get_data(), want.astype(np.float32))
        assert (made.inputs, made.outputs, made.host) == (["m"], ["m_out"], [])


def test_files_of_a_checked_program(tmp_path: Path) -> None:
    with bmlang.init(BOTH, "BM1684", tmp_path / "out") as program:
        x, y = Tensor("x", data=noise(2, 4)), Tensor("y")
        bmlang.adds(x, 1.5, y)
        made = bmlang.compile_with_check("net", [x], [y], 2, True, True)
    assert made.path == tmp_path / "out" / "compilation.bmodel"
    assert (program.out_dir / "input_ref_data.dat").read_bytes() == x.get_data().tobytes()
    assert (program.out_dir / "output_ref_data.dat").read_bytes() == y.get_data().tobytes()
    assert (program.out_dir / "profile.json").stat().st_size
    found = Session(made.path).run({"x": x.get_data()})
    np.testing.assert_array_equal(found["y"], y.get_data())


def test_the_outputs_are_what_nobody_reads(tmp_path: Path) -> None:
    with bmlang.init(COMPILE_TPU, "BM1684", tmp_path):
        x = Tensor("x", FLOAT32, 2, 3)
        a = bmlang.muls(x, 2.0)
        bmlang.adds(x, 1.0, name="b")
        c = bmlang.add(a, x)
        made = bmlang.compile("net")
        assert (made.inputs, made.outputs) == (["x"], ["b", "output"])
        data = noise(2, 3)
        found = Session(made.path).run({"x": data})
        assert bmlang.compile("net", outputs=[a, c]).outputs == ["output", "output1"]
        assert (a.dtype, a.shape, c.shape) == (FLOAT32, (2, 3), (2, 3))
        with pytest.raises(UsageError, match="no data"):
            c.get_data()
    np.testing.assert_array_equal(found["b"], data + 1)
    np.testing.assert_array_equal(found["output"], data * 3)


def test_a_program_is_ordinary_ir_and_an_ordinary_model(tmp_path: Path) -> None:
    """Saved IR goes through bmnet-opt, the model through bmnet-run with race check and timing."""
    with bmlang.init(BOTH, "BM1684", tmp_path):
        x = Tensor("x", data=noise(1, 8, 6, 6))
        y = bmlang.active(x * 0.5 + x, ActiveType.ACTIVE_SIGMOID, Tensor("y"))
        made = bmlang.compile("net")
    assert '"tensorop.sigmoid"' in str(made.module)
    save_module(made.module, tmp_path / "recorded.mlir")
    done = CliRunner().invoke(
        opt, [str(tmp_path / "recorded.mlir"), "--pipeline", "canonicalize", "-o", str(tmp_path / "out.mlir")]
    )
    assert done.exit_code == 0, done.output
    np.savez(tmp_path / "in.npz", x=x.get_data())
    files = [str(made.path), "--data", str(tmp_path / "in.npz"), "-o", str(tmp_path / "o.npz")]
    done = CliRunner().invoke(run, [*files, "--timing", "--check-races"])
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(np.load(tmp_path / "o.npz")["y"], y.get_data(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [FLOAT32, INT8])
def test_a_chain_of_local_operators_moves_only_its_ends(dtype: DataType, tmp_path: Path) -> None:
    with bmlang.init(BOTH, "BM1684", tmp_path) as program:
        shape = (4, 32, 14, 14)
        data = [(noise(*shape, seed=seed) * 20).astype(np.float32 if dtype == FLOAT32 else np.int8) for seed in (0, 1)]
        x, y = (Tensor(name, data=array) for name, array in zip("xy", data))
        z = x
        for _ in range(10):
            z = bmlang.sub(z, y, dtype=dtype)
            z = bmlang.max(z, y)
            z = bmlang.mul(z, y, dtype=dtype)
        made = program.compile_with_check("chain", [x, y], [z])
    ends = data[0].nbytes
    assert not made.host
    assert sum(row.loaded for row in made.result.rows) == 2 * ends
    assert sum(row.stored for row in made.result.rows) == ends


def test_constants_are_stored_with_the_program(tmp_path: Path) -> None:
    with bmlang.init(BOTH, "BM1684", tmp_path) as program:
        x, c = Tensor("x", data=noise(2, 3)), Tensor("c", FLOAT32, 2, 3)
        with pytest.raises(UsageError, match="constdata on BM1684: tensor needs data of set_data"):
            bmlang.constdata(c)
        c.set_data(noise(2, 3, seed=1))
        bmlang.constdata(c)
        y = x + c
        with pytest.raises(UsageError, match=r"cannot write .* it is a constant"):
            bmlang.add(x, x, c)
        assert program.compile_with_check("net", [x], [y]).inputs == ["x"]


def test_lengths_that_depend_on_values_have_room_and_a_count(tmp_path: Path) -> None:
    """True lengths at once, the longest one and a count from the device."""
    data = np.array([[0, 1, 2], [3, 0, 0]], np.float32)
    with bmlang.init(BOTH, "BM1684", tmp_path) as program:
        x = Tensor("x", data=data)
        places = bmlang.where(x, Tensor("places"))
        kept = bmlang.masked_select(x, x, Tensor("kept"))
        assert (places.shape, kept.shape) == ((3, 2), (3,))
        made = program.compile_with_check("net", [x], [places, kept], dyn=True)
    assert made.outputs == ["places", "places_count", "kept", "kept_count"]
    assert any("'kept' has room for 6 entries" in note for note in made.notes)
    found = Session(made.path).run({"x": data}, raw=True)
    assert found["places"].tolist() == [[0, 1], [0, 2], [1, 0], [-1, -1], [-1, -1], [-1, -1]]
    assert found["kept"].tolist() == [1, 2, 3, 0, 0, 0]
    assert found["kept_count"].tolist() == [3]


def test_parameters_that_are_computed_work_at_once_and_say_at_compile_time_what_is_missing(tmp_path: Path) -> None:
    with bmlang.init(BOTH, "BM1684", tmp_path):
        x, times = Tensor("x", data=noise(2, 3)), Tensor("times", data=np.array([1, 2], np.int32))
        y = bmlang.tile_v2(x, times, Tensor("y"))
        z = y + 1.0
        np.testing.assert_array_equal(z.get_data(), np.tile(x.get_data(), (1, 2)) + np.float32(1))
        with pytest.raises(UnsupportedError, match="'y' takes its reps from a tensor that is computed at run time"):
            bmlang.compile("net")
    with bmlang.init(BOTH, "BM1684", tmp_path) as program:
        shape = bmlang.shape_fetch(x, bmlang.ShapeFetchParam(0, 2))
        y = bmlang.reshape_v2(bmlang.tile_v2(x, bmlang.muls(shape, 1)), Tensor(data=np.array([-1], np.int32), name="n"))
        assert y.shape == (36,)
    with bmlang.init(BOTH, "BM1684", tmp_path) as program:
        y = bmlang.tile_v2(x, bmlang.shape_fetch(x, bmlang.ShapeFetchParam(0, 2)))
        assert not program.compile_with_check("net", [x], [y]).host


@pytest.mark.parametrize(
    ("mode", "chip", "message"),
    [
        (COMPUTE_CPU, "BM1684", "nothing has been recorded in the mode COMPUTE_CPU"),
        (BOTH, "BM1682", "no instruction facts of the BM1682 are public, so nothing can be compiled for it"),
    ],
)
def test_what_cannot_be_compiled_says_why(mode: BmLangMode, chip: str, message: str) -> None:
    with bmlang.init(mode, chip):
        bmlang.add(Tensor(data=[1.0]), Tensor(data=[2.0]))
        with pytest.raises(BMError, match=message):
            bmlang.compile("net")


def test_further_mistakes_have_a_sentence(tmp_path: Path) -> None:
    with bmlang.init(BOTH, "BM1684", tmp_path) as program:
        x, y = Tensor("x", data=[1.0, 2.0]), Tensor("x", data=[3.0, 4.0])
        z = x + y
        with pytest.raises(UsageError, match="'x' is the name of an input and of another tensor"):
            bmlang.compile("net")
        with pytest.raises(UsageError, match="the inputs must be those that operators have read"):
            program.compile_with_check("net", [x], [z])
        with pytest.raises(UsageError, match="opt_level is 0, 1 or 2, got 3"):
            bmlang.compile("net", 3)
        with pytest.raises(UsageError, match=r"cannot be an output: no recorded operator wrote it"):
            bmlang.compile("net", outputs=[Tensor()])
        with pytest.raises(UsageError, match="add needs 'tensor_i1', a Tensor"):
            bmlang.add(x)
        with pytest.raises(UsageError, match="add has no parameter 'b'"):
            bmlang.add(x, b=y)
        with pytest.raises(UsageError, match="add takes 3 arguments, got 4"):
            bmlang.add(x, y, z, z)
        with pytest.raises(UsageError, match="pool needs pool_param to be a PoolParam, got 3"):
            bmlang.pool(x, 3)
        with pytest.raises(UsageError, match="sort cannot write two results to one tensor"):
            bmlang.sort(x, z, z)
        with pytest.raises(BMError, match=r"add on BM1684: tensor_i0 .2. and tensor_i1 .2, 1. must have the same"):
            bmlang.add(x, Tensor(data=[[1.0], [2.0]]))
        with pytest.raises(BMError, match=r"add on BM1684: the sizes of .* must be equal or 1 along every axis"):
            bmlang.add(x, Tensor(data=[1.0, 2.0, 3.0]))
        with pytest.raises(BMError, match="gts on BM1684: scalar_i1 must not be INT8"):
            bmlang.gts(x, Scalar(1, INT8))
        with pytest.raises(BMError, match="has no data"):
            bmlang.add(x, Tensor("empty", FLOAT32, 2))
        with pytest.raises(BMError, match="tensor_i1 has no element type yet"):
            bmlang.add(x, Tensor())


def test_a_check_finds_a_wrong_reference(tmp_path: Path) -> None:
    with bmlang.init(BOTH, "BM1684", tmp_path) as program:
        x = Tensor("x", data=np.array([1, 2], np.int32))
        y = bmlang.adds(x, 1, Tensor("y"))
        y.array = np.array([2, 4], np.int32)
        with pytest.raises(BMError, match="output 'y' differs from its reference in 1 elements"):
            program.compile_with_check("net", [x], [y])


def test_layers_of_the_users_own_run_on_the_host(tmp_path: Path) -> None:
    @bmlang.register_cpu_function("bmlang_doubled")
    def doubled(arrays: Any, ints: Any, floats: Any) -> Any:
        return arrays[0] * floats[0]

    with bmlang.init(BOTH, "BM1684", tmp_path) as program:
        x = Tensor("x", data=noise(2, 3))
        param = UserCpuParam("bmlang_doubled", ((2, 3),), f32_params=(2.0,))
        (y,) = bmlang.customed_ops([x], [Tensor("y")], param, 64)
        made = program.compile_with_check("net", [x], [y])
        assert [row.kind for row in made.host] == ["bmlang_doubled"]
        np.testing.assert_array_equal(y.get_data(), x.get_data() * 2)


def test_int32_goes_through_float32() -> None:
    """Above 2**24 numbers are rounded, as the vendor has it."""
    with bmlang.init(COMPUTE_CPU, "BM1684"):
        x = Tensor(data=np.array([16777217, 2147483647], np.int32))
        assert bmlang.adds(x, 0).get_data().tolist() == [16777216, 2147483647]
        assert bmlang.cast(x, dtype=FLOAT32).get_data().dtype == np.float32
        assert bmlang.maxs(x, Scalar(5, INT32)).get_data().tolist() == [16777216, 2147483647]
