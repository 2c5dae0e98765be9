"""The vendor's bundles of language models: every recorded bit, through sessions and BMRuntime, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bm1684x_bundles import (
    BUNDLES,
    WAYS,
    Card,
    call,
    content,
    model,
    opened,
    product_names,
    products,
    recorded,
    recorded_runs,
    runs,
)

from bmcompiler.bmodel import load
from bmcompiler.bmodel.bm168x import BASIC, IO_ALONE, read
from bmcompiler.cli.common import run
from bmcompiler.cli.run import cli as run_cli
from bmcompiler.cli.tool import cli
from bmcompiler.errors import FileFormatError, RuntimeUseError, SimulatorError, UnsupportedError
from bmcompiler.ir.types import numpy_dtype
from bmcompiler.runtime import Session

LLAMA, QWEN, SAMPLING = BUNDLES
BLOCK = "block_cache_0"


@WAYS
@pytest.mark.parametrize(("name", "count"), [(LLAMA, 12), (QWEN, 16), (SAMPLING, 14)])
def test_every_recorded_run_of_static_nets_gives_the_same_bits(way: str, name: str, count: int) -> None:
    done = 0
    with opened(way, name) as session:
        for net, _, inputs, outputs in runs(name):
            found = session.net(net.name).run(inputs, raw=True)
            assert {key: value.tobytes() for key, value in found.items()} == {
                key: value.tobytes() for key, value in outputs.items()
            }
            done += 1
    assert done == count


@pytest.mark.parametrize("name", product_names())
def test_every_recorded_run_of_a_product_gives_the_same_bits(name: str) -> None:
    arrays = products()[name]
    loaded = read(memoryview(arrays["bmodel"].tobytes()), name)
    session, done = Session(loaded), 0
    for _, _, inputs, outputs in recorded_runs(loaded, arrays):
        found = session.run(inputs, raw=True)
        assert [found[key].tobytes() for key in outputs] == [value.tobytes() for value in outputs.values()]
        done += 1
    assert done == 2


def test_static_parts_before_a_dynamic_search_give_its_answer() -> None:
    head = Session(model(LLAMA).static_part(), net="lm_head")
    for case in "ab":
        (logits,) = head.run(recorded(LLAMA)[f"{case}/lm_head/in/hidden_states"], raw=True).values()
        assert logits.argmax() == recorded(LLAMA)[f"{case}/lm_head/out/token_id"]
    assert model(LLAMA).static_part().static_part().nets == model(LLAMA).static_part().nets


def test_dynamic_subnets_are_refused_by_that_word(caplog: pytest.LogCaptureFixture) -> None:
    session = Session(model(LLAMA), net="lm_head")
    hidden = recorded(LLAMA)["a/lm_head/in/hidden_states"]
    with pytest.raises(SimulatorError, match=r"subnet 1 of net 'lm_head' is dynamic.*bmnet-tool static"):
        session.run(hidden)
    card = Card(model(LLAMA))
    info = call.bmrt_get_network_info(card.runtime, "lm_head")
    tensor = call.bmrt_tensor(card.runtime, info.input_dtypes[0], info.stages[0].input_shapes[0])[1]
    assert not call.bmrt_launch_tensor(card.runtime, "lm_head", [tensor], 1, [None], 1)
    assert "is dynamic" in caplog.text
    card.close()


def test_what_a_net_keeps_is_its_own_and_outlasts_other_nets() -> None:
    inputs, wanted = next((ins, outs) for net, _, ins, outs in runs(QWEN) if net.name == BLOCK)
    first = Session(model(QWEN), net=BLOCK)
    other, prompt = first.net("block_cache_1"), first.net("block_0")
    assert not first.memory("history_k").any()
    first.memory("history_k")[...], first.memory("history_v")[...] = inputs["history_k"], inputs["history_v"]
    prompt.run({info.name: np.zeros(info.shape) for info in prompt.inputs})
    assert not other.memory("history_k").any()
    left = {name: value for name, value in inputs.items() if not name.startswith("history")}
    row = first.memory("history_k")[0, 3]
    found = first.run(left, raw=True, into={"k_cache": row})
    assert found["output_states"].tobytes() == wanted["output_states"].tobytes()
    assert row.tobytes() == wanted["k_cache"].tobytes()
    assert first.program_for(left) == first.model.stages().index(
        next(stage for stage in first.model.stages() if stage.net == BLOCK)
    )


def test_nets_share_coefficients_and_neuron_memory() -> None:
    def first_byte(net: str) -> int:
        (found,) = (one for one in model(QWEN).nets if one.name == net)
        (place,) = {np.frombuffer(stage.coefficients, np.uint8).ctypes.data for stage in found.stages}
        return place

    assert first_byte("block_0") == first_byte(BLOCK) != first_byte("block_1")
    card = Card(model(QWEN))
    places: dict[str, set[tuple[int, ...]]] = {}
    for net in card.nets:
        info = call.bmrt_get_network_info(card.runtime, net)
        places[net] = {tuple(one.device_addr for one in stage.input_mems) for stage in info.stages}
        assert (info.addr_mode, info.is_dynamic) == (int(net.startswith("block_cache")), False)
    assert places["block_0"] == places["block_1"] and len(places[BLOCK]) == 1
    assert not places[BLOCK] & places["block_cache_1"]
    card.close()


def test_bfloat16_is_passed_as_bits_or_as_real_numbers() -> None:
    inputs, wanted = next((ins, outs) for net, _, ins, outs in runs(QWEN) if net.name == BLOCK)
    half = numpy_dtype("bf16")
    for dtype in (half, np.float32):
        real = {
            name: value.view(half).astype(dtype) if value.dtype == np.uint16 else value
            for name, value in inputs.items()
        }
        found = Session(model(QWEN), net=BLOCK).run(real)
        for name, value in found.items():
            assert value.dtype == np.float32 and value.tobytes() == wanted[name].view(half).astype("f4").tobytes()


def test_nan_is_a_device_value_of_floats_and_no_real_value() -> None:
    """A hidden state may overflow in f16: hosts hand it on."""
    head = Session(model(LLAMA).static_part(), net="lm_head")
    hidden = recorded(LLAMA)["a/lm_head/in/hidden_states"].copy()
    hidden[0, 3] = np.nan
    (logits,) = head.run(hidden, raw=True).values()
    assert np.isnan(logits).all()
    with pytest.raises(RuntimeUseError, match="'hidden_states' contains NaN"):
        head.run(hidden)


def test_wrong_names_and_places_are_refused() -> None:
    session = Session(model(QWEN))
    assert session.nets[0] == "embedding" and session.inputs[0].name == "input_ids"
    for wrong in (lambda: session.net("block_9"), lambda: Session(model(QWEN), net="block_9")):
        with pytest.raises(RuntimeUseError, match=r"no net 'block_9'.*embedding, lm_head"):
            wrong()
    with pytest.raises(RuntimeUseError, match="keeps no tensor 'input_ids'"):
        session.memory("input_ids")
    ids = np.zeros((1, 48), np.int32)
    with pytest.raises(RuntimeUseError, match="no output 'x'"):
        session.run(ids, into={"x": ids})
    with pytest.raises(RuntimeUseError, match="6144 elements of uint16, its place 48 of int32"):
        session.run(ids, into={"embedding": ids})
    with pytest.raises(RuntimeUseError, match="input 'position_ids' is missing"):
        session.net("block_0").run({"input_states": np.zeros((1, 48, 128))})


def test_tools_show_and_keep_address_modes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, parts = tmp_path / "bundle.bmodel", tmp_path / "parts"
    file.write_bytes(content(QWEN))
    assert run(cli, "bmnet-tool", ["info", str(file)]) == 0
    out = capsys.readouterr().out
    assert f"net 2: [{BLOCK}]  static, addr_mode: io_alone" in out and "io mem size: 49152" in out
    assert run(cli, "bmnet-tool", ["extract", str(file), "-o", str(parts)]) == 0
    files = [str(parts / f"bm_net{net}_stage{index}.bmodel") for net, index in ((2, 0), (2, 1), (2, 2), (3, 0), (6, 0))]
    assert run(cli, "bmnet-tool", ["combine", *files, "-o", str(tmp_path / "some.bmodel")]) == 0
    some = load(tmp_path / "some.bmodel")
    assert [(net.name, len(net.stages), net.address_mode) for net in some.nets] == [
        (BLOCK, 3, IO_ALONE), ("block_cache_1", 1, IO_ALONE), ("block_1", 1, BASIC),
    ]  # fmt: skip
    assert some.nets[0] == model(QWEN).nets[2] and len(some.weight_sets) == 2
    assert run(cli, "bmnet-tool", ["static", str(file), "-o", str(tmp_path / "static.bmodel")]) == 0
    assert "net lm_head gives lm_head.reshapetoken_value_f32" in capsys.readouterr().out
    assert load(tmp_path / "static.bmodel").nets == model(QWEN).static_part().nets


def test_a_net_is_run_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, given = tmp_path / "bundle.bmodel", tmp_path / "in.npz"
    file.write_bytes(content(QWEN))
    _, _, inputs, outputs = next(one for one in runs(QWEN) if (one[0].name, one[1]) == (BLOCK, 1))
    np.savez(given, **inputs)
    words = [str(file), "--data", str(given), "-o", str(tmp_path / "out.npz"), "--raw"]
    assert run(run_cli, "bmnet-run", [*words, "--net", BLOCK, "--timing"]) == 0
    assert {key: value.tobytes() for key, value in np.load(tmp_path / "out.npz").items()} == {
        key: value.tobytes() for key, value in outputs.items()
    }
    assert run(run_cli, "bmnet-run", words) != 0
    assert "--net" in capsys.readouterr().err
    assert run(run_cli, "bmnet-run", [*words, "--net", "block_9"]) == 1


def test_unfit_memory_is_refused() -> None:
    whole = model(QWEN)
    net = whole.nets[2]
    (tensor, *rest), stage = net.stages[0].inputs, net.stages[0]

    def changed(mode: int, **values: Any) -> bytes:
        stages = [replace(stage, **values)] if values else net.stages
        one = replace(whole, nets=[replace(net, stages=stages, address_mode=mode)])
        return b"".join(map(bytes, one.parts()))

    with pytest.raises(FileFormatError, match="outside the neuron memory"):
        changed(BASIC)
    with pytest.raises(FileFormatError, match="outside the io memory"):
        changed(IO_ALONE, inputs=[replace(tensor, address=stage.io_address - 64), *rest])
    with pytest.raises(FileFormatError, match="io memory from"):
        changed(IO_ALONE, io_size=1 << 41)
    outside = read(memoryview(changed(2, io_size=0)), "tagged")
    with pytest.raises(UnsupportedError, match="the mode io_tag are not known"):
        Session(outside).run({info.name: np.zeros(info.shape) for info in Session(outside).inputs})
    with pytest.raises(UnsupportedError, match="address modes io_alone and basic"):
        whole.combined([replace(whole, nets=[replace(net, address_mode=BASIC)])])
