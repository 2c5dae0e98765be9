"""Bundles that are compiled here: what they hold, the tokens they make, the command around them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from model_folders import small_config, small_tensors, write_folder
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from bmcompiler import bmodel
from bmcompiler.bmodel.bm168x import IO_ALONE, Bm168xModel
from bmcompiler.cli.llm import main as command
from bmcompiler.errors import UnsupportedError, UsageError
from bmcompiler.llm.bundle import Bundle
from bmcompiler.llm.compile import BundleOptions, compile_bundle
from bmcompiler.llm.estimate import estimate, weight_bytes
from bmcompiler.llm.float_model import FloatModel
from bmcompiler.llm.generate import Generator
from bmcompiler.llm.model import LanguageModel, open_model
from bmcompiler.llm.perplexity import pieces
from bmcompiler.llm.precision import Precision
from bmcompiler.llm.sampling import Sampler

PROMPT = [1, 5, 70, 33, 2]
KINDS = {
    "f16": Precision("f16"),
    "bf16": Precision("bf16"),
    "w8f16": Precision("f16", 8),
    "w4bf16": Precision("bf16", 4, 8),
}
NEAR = {"f16": 0.01, "bf16": 0.06, "w8f16": 0.03, "w4bf16": 0.35}
"""Distance of the state behind a prompt from float, as a part of its length."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = small_config(torch_dtype="float16", vocab_size=128, eos_token_id=127)
    made = write_folder(tmp_path_factory.mktemp("llm") / "model", config, small_tensors(config, np.float16))
    tokenizer = Tokenizer(models.WordLevel({chr(i): i for i in range(128)}, unk_token="?"))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Split("", "isolated"), decoders.Fuse()
    tokenizer.save(str(made / "tokenizer.json"))
    template = "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    (made / "tokenizer_config.json").write_text(json.dumps({"chat_template": template, "bos_token": "!"}))
    return made


@pytest.fixture(scope="module")
def model(folder: Path) -> LanguageModel:
    return open_model(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_a_bundle_makes_the_tokens_of_its_model(kind: str, model: LanguageModel) -> None:
    made = compile_bundle(model, BundleOptions(KINDS[kind], length=12, cache=20, check="always"))
    assert (made.checked, made.unchecked) == (7, {})
    generator = Generator(Bundle.of(made.model))
    states = np.ascontiguousarray(generator.prefill(PROMPT))
    found = (states.view(ml_dtypes.bfloat16) if states.dtype == np.uint16 else states).astype(np.float32)
    wanted = FloatModel(model).states(PROMPT)[-1:]
    assert np.linalg.norm(found - wanted) < NEAR[kind] * np.linalg.norm(wanted)
    at_once = list(generator.generate(PROMPT, 12))
    assert at_once == list(generator.generate(PROMPT, 12, one_by_one=True))
    ids, reference = list(PROMPT), FloatModel(model)
    for _ in range(12):
        ids.append(int(reference.logits(reference.states(ids)[-1:])[0].argmax()))
    if kind == "f16":
        assert at_once == ids[len(PROMPT) :]


def test_nets_of_a_layer_share_weights_and_caches_last(model: LanguageModel, tmp_path: Path) -> None:
    made = compile_bundle(model, BundleOptions(Precision("f16"), length=8)).model
    nets = {net.name: net for net in made.nets}
    for layer in range(model.architecture.layers):
        first, cached = nets[f"block_{layer}"], nets[f"block_cache_{layer}"]
        assert first.stages[0].coefficients is cached.stages[0].coefficients
        assert (first.address_mode, cached.address_mode) == (0, IO_ALONE)
    assert len(made.weight_sets) == model.architecture.layers + 2
    bmodel.save(made, tmp_path / "x.bmodel")
    again = bmodel.load(tmp_path / "x.bmodel")
    assert isinstance(again, Bm168xModel) and Bundle.of(again).rows == (8,)
    assert b"".join(map(bytes, again.parts())) == b"".join(map(bytes, made.parts()))


def test_the_last_net_may_give_the_token(model: LanguageModel) -> None:
    options = BundleOptions(length=8, cache=16, check="never")
    made = [compile_bundle(model, replace(options, logits=logits)).model for logits in (True, False)]
    scores, token = (Generator(Bundle.of(each)) for each in made)
    assert list(scores.generate(PROMPT, 6)) == list(token.generate(PROMPT, 6))
    with pytest.raises(UnsupportedError, match="gives the best token, no scores"):
        list(token.drawn(PROMPT, 2, (), Sampler(temperature=1).choose))


def test_lengths_that_cannot_be(model: LanguageModel) -> None:
    with pytest.raises(UsageError, match="prompts of 8 tokens do not fit a cache of 4"):
        BundleOptions(length=8, cache=4)
    with pytest.raises(UnsupportedError, match=r"config\.json: the model was made for 64 tokens, not for 65"):
        compile_bundle(model, BundleOptions(length=65))


def test_a_sampler_draws_as_it_is_told() -> None:
    scores = np.log(np.array([0.1, 0.5, 0.3, np.nan, 0.1], np.float32))
    assert Sampler().choose(scores) == 1
    draws = [Sampler(1.0, seed=seed).choose(scores) for seed in range(400)]
    assert set(draws) == {0, 1, 2, 4} and abs(draws.count(1) / 400 - 0.5) < 0.1
    assert {Sampler(1.0, top_k=2, seed=seed).choose(scores) for seed in range(60)} == {1, 2}
    assert {Sampler(1.0, top_p=0.4, seed=seed).choose(scores) for seed in range(20)} == {1}
    assert {Sampler(1.0, top_p=0.6, seed=seed).choose(scores) for seed in range(60)} == {1, 2}
    with pytest.raises(UsageError, match="top-p 0, seed 0 cannot be"):
        Sampler(top_p=0)


def test_estimates_count_the_bytes_that_are_compiled(model: LanguageModel) -> None:
    for precision in KINDS.values():
        if precision.bits == 4:
            continue
        made = compile_bundle(model, BundleOptions(precision, length=16, check="never")).model
        blocks = sum(len(net.stages[0].coefficients) for net in made.nets if net.name.startswith("block_cache"))
        found = estimate(model.architecture, precision, 16)
        assert 0 <= blocks - found.weights < 0.35 * blocks  # small layers: tables, scales in rows of their own
    assert weight_bytes(256, 128, Precision("f16", 4, group_size=64), 4) == 256 * (64 + 2 * 3)


def test_the_command_compiles_and_runs(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "new" / "x.bmodel"

    def bmnet(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["bmnet-llm", *words])
        with pytest.raises(SystemExit) as ended:
            command()
        out, err = capfd.readouterr()
        return int(ended.value.code or 0), out, err

    status, out, _ = bmnet("compile", str(folder), "-o", str(file), "--length", "8", "--cache", "16")
    assert status == 0 and "7 nets" in out and (file.parent / "config" / "tokenizer.json").is_file()
    status, text, err = bmnet("run", str(file), "--prompt", "hello", "--count", "4")
    assert status == 0 and "5 tokens read, 4 made" in err
    status, numbers, _ = bmnet("run", str(file), "--tokens", ",".join(str(ord(c)) for c in "hello"), "--count", "4")
    assert "".join(chr(int(each)) for each in numbers.split()) == text
    status, _, err = bmnet("run", str(file), "--chat", "--prompt", "a", "--count", "2", "--one-by-one")
    assert status == 0 and "8 tokens read" in err  # !<user>a
    assert bmnet("run", str(file), "--prompt", "x", "--temperature", "2", "--seed", "5")[1] != text
    (tmp_path / "text").write_text("the quick brown fox " * 4)
    status, out, _ = bmnet("eval", str(file), "--text", str(tmp_path / "text"), "--folder", str(folder))
    values = [float(line.split()[-1]) for line in out.splitlines() if line.startswith(("bundle", "float"))]
    assert status == 0 and abs(values[0] / values[1] - 1) < 0.01
    for words, said in (
        (["run", str(file)], "there is no prompt"),
        (["run", str(file), "--prompt", "hello hello"], "the prompt has 11 tokens, the bundle takes 1 to 8 at once"),
        (["run", str(file), "--tokens", "1,2,x"], "--tokens are numbers"),
        (["run", str(file), "--tokens", "1,2", "--count", "20"], "the caches are full: they hold 16 tokens"),
        (["run", str(folder / "config.json"), "--tokens", "1"], "config.json"),
        (["compile", str(file.parent), "-o", str(tmp_path / "y.bmodel")], "config.json: cannot be read"),
        (["run", str(file), "--prompt", "a", "--tokenizer", str(tmp_path)], "there is no tokenizer"),
    ):
        status, _, err = bmnet(*words)
        assert status in (1, 2) and said in err and err.count("bmnet-llm: ") == 1, (words, err)
    status, out, _ = bmnet("estimate", str(folder), "--json", "--length", "32")
    rows = json.loads(out)["rows"]
    assert [row["types"] for row in rows] == ["w4f16", "w8f16", "f16"]
    assert rows[0]["tokens/s"] > rows[1]["tokens/s"] > rows[2]["tokens/s"]


def test_pieces_are_spread_over_a_text() -> None:
    assert pieces(list(range(10)), 4, 2, [99]) == [[99, 0, 1, 2], [99, 7, 8, 9]]
    assert pieces(list(range(10)), 8, 5) == [list(range(8))]
    with pytest.raises(UsageError, match="the text has 10 tokens, a piece 11"):
        pieces(list(range(10)), 11, 1)


def test_a_prompt_of_one_token_is_proven_and_read(model: LanguageModel) -> None:
    """`embedding` and `embedding_cache` take inputs alike then, and are two nets still."""
    made = compile_bundle(model, BundleOptions(length=1, cache=4, check="always"))
    assert (made.checked, made.unchecked) == (7, {})
    generator = Generator(Bundle.of(made.model))
    assert list(generator.generate([5], 3)) == list(generator.generate([5], 3, one_by_one=True))
