"""Bundles that are compiled here: what they hold, the tokens they make, the command around them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from model_folders import small_config, small_tensors, write_folder
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from bmcompiler import bmodel
from bmcompiler.analysis.timing_profile import named_profiles, profile_for
from bmcompiler.backends.lanes import target as lanes
from bmcompiler.bmodel.bm168x import IO_ALONE, Bm168xModel
from bmcompiler.cli.llm import main as command
from bmcompiler.defaults import LLM_TARGET
from bmcompiler.errors import RuntimeUseError, UnsupportedError, UsageError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Function, TensorType
from bmcompiler.llm import compile as compile_module
from bmcompiler.llm.bundle import Bundle
from bmcompiler.llm.compile import BundleOptions, CompiledBundle, compile_bundle
from bmcompiler.llm.estimate import estimate, weight_bytes
from bmcompiler.llm.float_model import FloatModel
from bmcompiler.llm.generate import Generator, best
from bmcompiler.llm.heads import best_token, greedy_head, sample_head
from bmcompiler.llm.model import LanguageModel, open_model
from bmcompiler.llm.perplexity import pieces
from bmcompiler.llm.planned import net_cycles, planned
from bmcompiler.llm.precision import Precision
from bmcompiler.llm.sampling import Sampler
from bmcompiler.ops.builder import Builder

RECORDED = Path(__file__).parents[1] / "data" / "bm1684x_bundles"
PROMPT = [1, 5, 70, 33, 2]
KINDS = {
    "f16": Precision("f16"),
    "bf16": Precision("bf16"),
    "w8f16": Precision("f16", 8),
    "w4bf16": Precision("bf16", 4, 8),
}
SHORT = BundleOptions(length=8, cache=16, check="never")
NEAR = {"f16": 0.01, "bf16": 0.06, "w8f16": 0.03, "w4bf16": 0.35}
"""Distance of the state behind a prompt from float, as a part of its length."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = small_config(torch_dtype="float16", vocab_size=128, eos_token_id=127)
    made = write_folder(tmp_path_factory.mktemp("llm") / "model", config, small_tensors(config, np.float16))
    tokenizer = Tokenizer(models.WordLevel({chr(i): i for i in range(128)}, unk_token="?"))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Split("", "isolated"), decoders.Fuse()
    tokenizer.save(str(made / "tokenizer.json"))
    template = "{{ bos_token }}{% for m in messages %}<{{ m.role[0] }}>{{ m.content }}{% endfor %}"
    (made / "tokenizer_config.json").write_text(json.dumps({"chat_template": template, "bos_token": "!"}))
    return made


@pytest.fixture(scope="module")
def model(folder: Path) -> LanguageModel:
    return open_model(folder)


@pytest.fixture(scope="module")
def compiled(model: LanguageModel) -> Callable[[BundleOptions], CompiledBundle]:
    """Bundles of the model, each compiled once."""
    return cache(partial(compile_bundle, model))


def programs_of(made: CompiledBundle) -> int:
    """How many were proven."""
    return 0 if made.proof is None else made.proof.programs


def proven(kind: str) -> BundleOptions:
    """Of bundles of all kinds."""
    return BundleOptions(KINDS[kind], length=12, cache=20, check="always")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.sweep] if kind in ("bf16", "w8f16") else []) for kind in KINDS]
)
def test_a_bundle_makes_the_tokens_of_its_model(
    kind: str, model: LanguageModel, compiled: Callable[[BundleOptions], CompiledBundle]
) -> None:
    made = compiled(proven(kind))
    assert (programs_of(made), made.unchecked) == (9, {})
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


def test_nets_of_a_layer_share_weights_and_caches_last(
    model: LanguageModel, compiled: Callable[[BundleOptions], CompiledBundle], tmp_path: Path
) -> None:
    made = compiled(proven("f16")).model
    nets = {net.name: net for net in made.nets}
    for layer in range(model.architecture.layers):
        first, cached = nets[f"block_{layer}"], nets[f"block_cache_{layer}"]
        assert first.stages[0].coefficients is cached.stages[0].coefficients
        assert (first.address_mode, cached.address_mode) == (0, IO_ALONE)
        inputs, outputs = cached.stages[0].inputs, cached.stages[0].outputs
        for past, row in zip(inputs[3:], outputs[1:]):  # the new row is the one behind the cache: nothing is copied
            assert row.address == past.address + past.size
    assert len(made.weight_sets) == model.architecture.layers + 4
    table = model.architecture.vocabulary * model.architecture.hidden * 2  # in 16 bits, as the checkpoint has it
    assert 0 <= len(nets["embedding"].stages[0].coefficients) - table < 4096
    bmodel.save(made, tmp_path / "x.bmodel")
    again = bmodel.load(tmp_path / "x.bmodel")
    assert isinstance(again, Bm168xModel) and Bundle.of(again).rows == (20,)
    assert b"".join(map(bytes, again.parts())) == b"".join(map(bytes, made.parts()))


def test_nets_that_are_finished_are_not_compiled_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bundle by files of its nets, by two processes, and once more after an end in the middle: the same bytes."""
    options = BundleOptions(Precision("f16", 8), length=8, check="never")
    wanted = b"".join(map(bytes, compile_bundle(folder, options).model.parts()))
    asked: list[str] = []
    original = compile_module.compile_group

    def noted(model: LanguageModel, names: tuple[str, ...], *more: Any) -> Any:
        asked.append(names[0])
        return original(model, names, *more)

    first = compile_bundle(folder, options, parts=tmp_path, jobs=2)
    monkeypatch.setattr(compile_module, "compile_group", noted)
    for names in ([], ["block_1"]):
        for name in names:  # as if it had ended before
            (next(tmp_path.iterdir()) / f"{name}.json").unlink()
        again = compile_bundle(folder, options, parts=tmp_path)
        assert asked == names
        for made in (first, again):
            assert b"".join(map(bytes, made.model.parts())) == wanted
    compile_bundle(folder, replace(options, length=4), parts=tmp_path)
    assert len(asked) == 1 + 6  # another compilation has files of its own
    with pytest.raises(UsageError, match="processes share nets by files"):
        compile_bundle(folder, options, jobs=2)


def test_equal_layers_are_planned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one ends with a norm, those before it are alike."""
    config = small_config(torch_dtype="float16", num_hidden_layers=4)
    folder = write_folder(tmp_path / "model", config, small_tensors(config, np.float16))
    planned: list[str] = []
    original = lanes.choose_groups

    def noted(function: Function, *more: Any) -> Any:
        planned.append(function.name)
        return original(function, *more)

    monkeypatch.setattr(lanes, "choose_groups", noted)
    compile_bundle(folder, SHORT)
    blocks = [name for name in planned if name.startswith("block_")]
    assert blocks == ["block_0", "block_cache_0", "block_3", "block_cache_3"]


def test_the_last_net_may_give_the_token(compiled: Callable[[BundleOptions], CompiledBundle]) -> None:
    made = [compiled(replace(SHORT, logits=logits)).model for logits in (True, False)]
    scores, token = (Generator(Bundle.of(each)) for each in made)
    assert list(scores.generate(PROMPT, 6)) == list(token.generate(PROMPT, 6))
    with pytest.raises(UnsupportedError, match="gives the best token, no scores"):
        list(token.drawn(PROMPT, 2, (), Sampler(temperature=1)))


def test_tokens_are_chosen_on_the_chip(compiled: Callable[[BundleOptions], CompiledBundle]) -> None:
    """By greedy_head and sample_head, as the host does it by the scores."""
    bundle = Bundle.of(compiled(SHORT).model)
    on_chip, on_host = Generator(bundle), Generator(replace(bundle, candidates=0))
    assert (bundle.candidates, bundle.seen) == (50, 16)
    assert list(on_chip.generate(PROMPT, 6)) == [best(each) for each in logits_of(on_host, PROMPT, 6)]
    sampler = Sampler(temperature=0.7, top_k=50, top_p=0.95, penalty=1.3)
    chances, tokens = on_chip.candidates(on_chip.prefill(PROMPT), PROMPT, sampler)
    scores = on_host.logits(on_host.prefill(PROMPT)).astype(np.float64)
    scores[PROMPT] = np.where(scores[PROMPT] < 0, scores[PROMPT] * 1.3, scores[PROMPT] / 1.3)
    assert list(tokens) == np.argsort(-scores, kind="stable")[:50].tolist()
    assert abs(chances.sum() - 1) < 1e-5 and (np.diff(chances) <= 0).all()
    draws = [list(on_chip.drawn(PROMPT, 5, (), replace(sampler, seed=seed))) for seed in (3, 3, 4)]
    assert draws[0] == draws[1] != draws[2]
    one = Sampler(temperature=3.0, top_k=1)
    assert list(on_chip.drawn(PROMPT, 6, (), one)) == list(on_chip.generate(PROMPT, 6))


def logits_of(generator: Generator, prompt: list[int], count: int) -> Iterator[np.ndarray]:
    """Scores behind a prompt and behind each best token after it."""
    hidden = generator.prefill(prompt)
    for _ in range(count):
        scores = generator.logits(hidden)
        yield scores
        hidden = generator.decode(best(scores))


@pytest.mark.parametrize("which", ["a", "b"])
def test_heads_are_those_of_the_vendor(which: str) -> None:
    """Recorded scores give the recorded tokens and chances; with fewer than 50 asked for the others have none."""
    prefix = f"{which}/sample_head/"
    with np.load(RECORDED / "qwen2_a_w8bf16_sample.npz") as arrays:
        given = {key.split("/")[-1]: arrays[key] for key in arrays if key.startswith(f"{prefix}in/")}
        chances, tokens = (arrays[f"{prefix}out/{name}"] for name in ("Softmax1", "token_idx"))
        scores, token = arrays[f"{which}/greedy_head/in/m_logits"], arrays[f"{which}/greedy_head/out/token_id"]
    found = run_module(sample_head(scores.shape[1], given["input_ids"].shape[1]), given)
    asked = tokens.shape[1]
    np.testing.assert_array_equal(found["token_idx"][:, :asked], tokens)
    np.testing.assert_allclose(found["Softmax1"][:, :asked], chances, atol=1e-6)
    assert not found["Softmax1"][:, asked:].any()
    np.testing.assert_array_equal(run_module(greedy_head(scores.shape[1]), {"m_logits": scores})["token_id"], token)


@pytest.mark.parametrize(
    "scores, token",
    [([1, 5, 5, 2], 1), ([np.nan, 1, 2], 2), ([-np.inf] * 3, 0), ([1, np.inf, np.inf], 1), ([np.nan, -np.inf, -1], 2)],
)
def test_the_first_of_the_best_is_the_token(scores: list[float], token: int) -> None:
    made = Builder.new("x")
    x = made.input("x", TensorType((1, len(scores)), "f32"))
    module = made.outputs([best_token(made, x)], ["y"])
    assert run_module(module, {"x": np.array([scores], np.float32)})["y"].item() == token


def test_short_prompts_have_programs_of_their_own(model: LanguageModel) -> None:
    """Whatever program reads a prompt, the tokens are those of one; only the longest takes the longest prompt."""
    options = BundleOptions(length=12, cache=24, check="always")
    made = compile_bundle(model, replace(options, shorter=(4, 8)))
    assert made.unchecked == {}
    bundle = Bundle.of(made.model)
    assert bundle.prompts == (4, 8, 12) and len(made.model.weight_sets) == model.architecture.layers + 4
    several, one = Generator(bundle), Generator(Bundle.of(compile_bundle(model, replace(options, check="never")).model))
    for count in (1, 4, 5, 8, 9, 12):
        prompt = (PROMPT * 3)[:count]
        assert list(several.generate(prompt, 4)) == list(one.generate(prompt, 4))
        assert several.states(prompt).shape[1] == count
    with pytest.raises(RuntimeUseError, match="the bundle takes 1 to 12 at once"):
        several.prefill(PROMPT * 3)
    for lengths in ((12,), (4, 4), (16,), (0,)):
        with pytest.raises(UsageError, match="are not several"):
            replace(options, shorter=lengths)


def test_prompts_go_on_from_the_caches(tmp_path: Path) -> None:
    """In parts, and behind what was said before: the tokens are those of reading all anew, and of the float model."""
    config = small_config(torch_dtype="float16", model_type="mistral", sliding_window=5)
    model = open_model(write_folder(tmp_path / "model", config, small_tensors(config, np.float16)))
    options = BundleOptions(length=6, shorter=(2,), cache=24, goes_on=True, logits=False, check="always")
    made = compile_bundle(model, options)
    assert (programs_of(made), made.unchecked) == (14, {}) and len(made.model.weight_sets) == 4
    generator = Generator(Bundle.of(made.model))
    longer = [*PROMPT, 9, 17, 4, 3, 6, 7, 60, 50, 40]
    wanted, reference = list(longer), FloatModel(model)
    for _ in range(6):
        wanted.append(int(reference.logits(reference.states(wanted)[-1:])[0].argmax()))
    assert [*longer, *generator.generate(longer, 6)] == wanted
    assert generator.tokens == wanted[:-1]
    first = list(generator.generate(PROMPT, 3))
    turn = [*PROMPT, *first, 11, 12, 13]
    assert generator.cached(turn) == len(PROMPT) + 2
    nets: list[str] = []
    run = generator._run
    generator._run = lambda name, *values, **more: nets.append(name) or run(name, *values, **more)  # type: ignore
    going_on = list(generator.generate(turn, 5, go_on=True))
    assert nets[:4] == ["embedding", "block_kv_0", "block_kv_1", "lm_head"]  # one part: four tokens are new
    assert going_on == list(generator.generate(turn, 5)) == list(generator.generate(turn, 5, one_by_one=True))
    generator.prefill(PROMPT)
    np.testing.assert_allclose(*(
        np.float32(states) for states in (generator.extend([9, 17]), generator.prefill([*PROMPT, 9, 17]))
    ), atol=0.02)  # fmt: skip
    with pytest.raises(RuntimeUseError, match="the prompt has 25 tokens, the bundle takes 1 to 24 at once"):
        generator.extend([1] * 18)


def test_bundles_without_nets_for_it_do_not_go_on(compiled: Callable[[BundleOptions], CompiledBundle]) -> None:
    generator = Generator(Bundle.of(compiled(replace(SHORT, logits=False)).model))
    generator.prefill(PROMPT)
    with pytest.raises(UnsupportedError, match="no nets for tokens behind those of the caches"):
        generator.extend([1])
    assert list(generator.generate([*PROMPT, 3], 3, one_by_one=True, go_on=True)) == list(
        generator.generate([*PROMPT, 3], 3)
    )


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
    assert {Sampler(1.0, penalty=1e3, seed=seed).choose(scores + 9, [1, 2]) for seed in range(40)} == {0, 4}
    with pytest.raises(UsageError, match="top-p 0, penalty 1, seed 0 cannot be"):
        Sampler(top_p=0)


def test_estimates_count_the_bytes_that_are_compiled(
    model: LanguageModel, compiled: Callable[[BundleOptions], CompiledBundle]
) -> None:
    for kind, precision in KINDS.items():
        if precision.bits == 4:
            continue
        made = compiled(proven(kind)).model
        blocks = sum(len(net.stages[0].coefficients) for net in made.nets if net.name.startswith("block_cache"))
        found = estimate(model.architecture, precision, 12, 20)
        assert 0 <= blocks - found.weights < 0.35 * blocks  # small layers: tables, scales in rows of their own
    assert weight_bytes(256, 128, Precision("f16", 4, group_size=64), 4) == 256 * (64 + 2 * 3)


def test_plans_take_the_time_of_what_is_compiled(model: LanguageModel) -> None:
    """Whatever the weights; the norm behind the last layer aside."""
    options = BundleOptions(KINDS["w4bf16"], length=16, cache=48, check="never")
    bounds, found = estimate(model.architecture, options.precision, 16, 48), planned(model.architecture, options)
    launching = bounds.launches * named_profiles(LLM_TARGET)["silicon"].launch * 1e-9
    profile = profile_for(LLM_TARGET, ["vendor"])

    def seconds(*nets: str) -> float:
        names = [f"{net}_{layer}" for net in nets[:1] for layer in range(model.architecture.layers)]
        return sum(net_cycles(model, name, options) for name in (*names, *nets[1:])) / profile.clock_hz

    assert found.token - launching == pytest.approx(seconds("block_cache", "embedding_cache", "lm_head"), rel=0.03)
    assert found.first - launching == pytest.approx(seconds("block", "embedding", "lm_head"), rel=0.03)
    assert found.token > bounds.token and found.first > bounds.first and found.memory == bounds.memory


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

    words = ("--length", "8", "--cache", "16", "--history", "--check", "2")
    status, out, _ = bmnet("compile", str(folder), "-o", str(file), *words)
    assert status == 0 and "11 nets" in out and "checked  2 samples of each of 11 programs: program = evaluate" in out
    assert (file.parent / "config" / "tokenizer.json").is_file()
    status, text, err = bmnet("run", str(file), "--prompt", "hello", "--count", "4")
    assert status == 0 and "5 tokens read, 4 made" in err
    status, numbers, _ = bmnet("run", str(file), "--tokens", ",".join(str(ord(c)) for c in "hello"), "--count", "4")
    assert "".join(chr(int(each)) for each in numbers.split()) == text
    status, _, err = bmnet("run", str(file), "--chat", "--prompt", "a", "--count", "2", "--one-by-one")
    assert status == 0 and "5 tokens read" in err  # !<u>a
    status, out, err = bmnet("run", str(file), "--chat", "--prompt", "", "--prompt", "", "--count", "1")
    assert status == 0 and len(out.splitlines()) == 2 and "11 tokens read, 2 made" in err  # !<u>, <a>.<u>
    assert bmnet("run", str(file), "--prompt", "x", "--temperature", "2", "--seed", "5")[1] != text
    (tmp_path / "text").write_text("the quick brown fox " * 4)
    status, out, _ = bmnet("eval", str(file), "--text", str(tmp_path / "text"), "--folder", str(folder))
    values = [float(line.split()[-1]) for line in out.splitlines() if line.startswith(("bundle", "float"))]
    assert status == 0 and abs(values[0] / values[1] - 1) < 0.01
    words = ("--text", str(tmp_path / "text"), "--folder", str(folder), "--workers", "2")
    assert bmnet("eval", str(file), *words)[:2] == (0, out)
    other, before = small_config(torch_dtype="float16", hidden_act="gelu"), file.read_bytes()
    write_folder(tmp_path / "other", other, small_tensors(other, np.float16))
    for words, said in (
        (["compile", str(tmp_path / "other"), "-o", str(file)], "config.json: is of another model than"),
        (["compile", str(folder), "-o", str(tmp_path / "none/x.bmodel"), "--length", "8192"], "was made for"),
        (["run", str(file)], "there is no prompt"),
        (["run", str(file), "--prompt", "a", "--tokens", "1"], "both --prompt and --tokens are given"),
        (["run", str(file), "--prompt", "hello" * 4], "the prompt has 20 tokens, the bundle takes 1 to 16 at once"),
        (["run", str(file), "--prompt", "a", "--prompt", "b"], "several prompts are turns of a chat"),
        (["run", str(file), "--tokens", "1,2,x"], "--tokens are numbers"),
        (["run", str(file), "--tokens", "1,2", "--count", "20"], "the caches are full: they hold 16 tokens"),
        (["run", str(folder / "config.json"), "--tokens", "1"], "config.json"),
        (["compile", str(file.parent), "-o", str(tmp_path / "y.bmodel")], "config.json: cannot be read"),
        (["run", str(file), "--prompt", "a", "--tokenizer", str(tmp_path)], "there is no tokenizer"),
    ):
        status, _, err = bmnet(*words)
        assert status in (1, 2) and said in err and err.count("bmnet-llm: ") == 1, (words, err)
    assert file.read_bytes() == before and not (tmp_path / "none").exists()
    status, out, _ = bmnet("estimate", str(folder), "--json", "--length", "32", "--plan", "--quantize", "w8f16")
    assert status == 0 and json.loads(out)["planned"]
    status, out, _ = bmnet("estimate", str(folder), "--json", "--length", "32")
    rows = json.loads(out)["rows"]
    assert [row["types"] for row in rows] == ["w4f16", "w8f16", "f16"]
    assert rows[0]["tokens/s"] > rows[1]["tokens/s"] > rows[2]["tokens/s"]


def test_pieces_are_spread_over_a_text() -> None:
    assert pieces(list(range(10)), 4, 2, [99]) == [[99, 0, 1, 2], [99, 7, 8, 9]]
    assert pieces(list(range(10)), 8, 5) == [list(range(8))]
    with pytest.raises(UsageError, match="the text has 10 tokens, fewer than the 11 of a piece"):
        pieces(list(range(10)), 11, 1)


def test_a_prompt_of_one_token_is_proven_and_read(model: LanguageModel) -> None:
    """`embedding` and `embedding_cache` take inputs alike then, and are two nets still."""
    made = compile_bundle(model, BundleOptions(length=1, cache=4, check="always"))
    assert (programs_of(made), made.unchecked) == (9, {})
    generator = Generator(Bundle.of(made.model))
    assert list(generator.generate([5], 3)) == list(generator.generate([5], 3, one_by_one=True))
