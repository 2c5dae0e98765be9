"""Tokens from the vendor's bundles, and files that are no bundles."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bm1684x_bundles import BUNDLES, FOLDER, WAYS, Array, bundle, content, model, opened, recorded

from bmcompiler.bmodel.bm168x import BASIC, Bm168xModel, Bm168xNet, Bm168xStage, TpuSubnet
from bmcompiler.errors import BMError, FileFormatError, RuntimeUseError, UnsupportedError
from bmcompiler.ir.types import numpy_dtype
from bmcompiler.llm import Bundle, Generator
from bmcompiler.llm.generate import best
from bmcompiler.runtime import Session

LLAMA, QWEN, SAMPLING = BUNDLES
PROMPT, MANY = [1, 17, 30, 42, 99], 30  # all three stages of QWEN: 16, 32 and 48 rows


def with_states(generator: Generator, prompt: Sequence[int], count: int) -> tuple[list[int], list[Array]]:
    """Tokens, and the hidden state that each comes from."""
    hidden, tokens = [generator.prefill(prompt)], []
    for _ in range(count):
        tokens.append(generator.best(hidden[-1]))
        if len(tokens) < count:
            hidden.append(generator.decode(tokens[-1]))
    return tokens, hidden


@WAYS
@pytest.mark.parametrize("name", [LLAMA, SAMPLING])
def test_eight_greedy_tokens_are_the_vendors(way: str, name: str) -> None:
    wanted = np.load(FOLDER / f"{name}.tokens.npz")
    with opened(way, name) as session:
        generator = Generator(bundle(name), session)
        tokens, hidden = with_states(generator, wanted["prompt"].tolist(), 8)
        assert tokens == wanted["tokens"].tolist()
        assert np.concatenate(hidden).tobytes() == wanted["hidden"].tobytes()
        assert generator.position == len(wanted["prompt"]) + 7
        for layer, caches in enumerate(generator.caches):
            assert [one.tobytes() for one in caches] == [wanted[side][layer].tobytes() for side in "kv"]
        if "logits" in wanted:
            found = np.stack([generator.logits(state) for state in hidden])
            assert found.tobytes() == wanted["logits"].tobytes()
        assert list(generator.generate(wanted["prompt"], 2)) == tokens[:2]
        assert list(generator.generate(wanted["prompt"], 2, stop=tokens[:1])) == tokens[:1]


@pytest.mark.parametrize(
    ("logits", "token"), [([1, 3, 3], 1), ([np.nan, -5, np.nan], 1), ([-np.inf, np.nan], 0), ([2, np.inf], 1)]
)
def test_the_best_token_is_the_one_of_the_dynamic_search(logits: list[float], token: int) -> None:
    assert best(np.array(logits, np.float32)) == token


def test_the_best_token_is_the_one_of_the_vendors_head() -> None:
    for case in "ab":
        logits, token = (recorded(SAMPLING)[f"{case}/greedy_head/{one}"] for one in ("in/m_logits", "out/token_id"))
        assert best(logits[0]) == token


def test_stages_share_a_cache_and_both_ways_agree() -> None:
    found = []
    for way in ("session", "bmruntime"):
        with opened(way, QWEN) as session:
            generator = Generator(bundle(QWEN), session)
            tokens, hidden = with_states(generator, PROMPT, MANY)
            caches = [cache.tobytes() for pair in generator.caches for cache in pair]
            found.append((tokens, [state.tobytes() for state in hidden], caches))
    assert found[0] == found[1] and len(set(found[0][0])) > 5


@pytest.mark.parametrize("name", BUNDLES)
def test_tokens_one_by_one_are_a_prompt_with_them(name: str) -> None:
    """Masks, positions and rows of the caches as bm1684x-llm.md 3 says, in all stages; else values are far apart."""
    tokens = [(7 * place) % 300 + 1 for place in range(40)]
    whole, parts = (Generator(bundle(name)) for _ in range(2))
    wanted, found = whole.prefill(tokens), parts.prefill(tokens[:5])
    for token in tokens[5:]:
        found = parts.decode(token)
    pairs = [(wanted, found)]
    for both in zip(whole.caches, parts.caches):
        pairs += [(expected[0, :40], given[0, :40]) for expected, given in zip(*both)]
    for expected, given in pairs:
        dtype = numpy_dtype("bf16") if expected.dtype == np.uint16 else expected.dtype
        a, b = expected.view(dtype).astype("f4"), given.view(dtype).astype("f4")
        assert abs(a - b).max() < 0.02 * abs(a).max()


def test_what_a_bundle_says_of_itself() -> None:
    one = bundle(QWEN)
    facts = (one.layers, one.half, one.prompt, one.rows, one.hidden, one.heads, one.width, one.vocabulary, one.dynamic)
    assert facts == (2, "bfloat16", 48, (16, 32, 48), 128, 2, 64, 384, ("lm_head",))
    assert [one.stage_rows(position) for position in (0, 15, 16, 47, 48)] == [16, 16, 32, 48, 0]
    assert bundle(LLAMA).half == "float16" and bundle(SAMPLING).dynamic == ("greedy_head", "sample_head")


def changed(name: str, change: Callable[[Bm168xNet], Bm168xNet | None]) -> Bm168xModel:
    """A recorded bundle with other nets; None leaves one out."""
    nets = [change(net) for net in model(name).nets]
    return replace(model(name), nets=[net for net in nets if net is not None])


def made_dynamic(*names: str) -> Callable[[Bm168xNet], Bm168xNet]:
    def change(net: Bm168xNet) -> Bm168xNet:
        stages = [replace(one, subnets=[TpuSubnet([], one.inputs, one.outputs, dynamic=True)]) for one in net.stages]
        return replace(net, stages=stages) if net.name in names else net

    return change


def test_prompts_are_read_one_by_one_where_their_nets_are_dynamic() -> None:
    wanted = np.load(FOLDER / f"{LLAMA}.tokens.npz")
    generator = Generator(Bundle.of(changed(LLAMA, made_dynamic("block_0", "block_1"))))
    assert generator.bundle.dynamic == ("lm_head", "block_0", "block_1") and generator.bundle.prompt == 0
    with pytest.raises(UnsupportedError, match=r"block_0 and so on, are dynamic.*one by one"):
        generator.prefill(wanted["prompt"])
    assert list(generator.generate(wanted["prompt"], 8, one_by_one=True)) == wanted["tokens"].tolist()


def test_prompts_and_caches_have_limits() -> None:
    generator = Generator(bundle(QWEN))
    with pytest.raises(RuntimeUseError, match="the prompt has 49 tokens, the bundle takes 1 to 48 at once"):
        generator.prefill([1] * 49)
    with pytest.raises(RuntimeUseError, match="the prompt has 49 tokens, the caches have room for 48"):
        next(generator.generate([1] * 49, 1, one_by_one=True))
    found: list[int] = []
    with pytest.raises(RuntimeUseError, match=r"the caches are full: they hold 48 tokens.*begin anew"):
        found.extend(generator.generate([1] * 47, 4))
    assert len(list(generator.generate([1] * 47, 2))) == 2 and generator.position == 48
    for wrong, reason in (
        ([], "there are no tokens"),
        ([1, 384], "384 is no token, they are 0 to 383"),
        ([-1], "-1 is no token"),
        ([1.5], "1 axes of float64"),
        ([[1]], "2 axes of int64"),
    ):
        with pytest.raises(RuntimeUseError, match=reason):
            generator.prefill(wrong)  # type: ignore[arg-type]


def test_a_head_may_give_the_best_token() -> None:
    """As bundles of ours may: the scores are searched on the chip."""

    class Head:
        def __init__(self, nets: Any) -> None:
            self.nets = nets

        def net(self, name: str) -> Any:
            return self if name == "lm_head" else self.nets.net(name)

        def run(self, inputs: dict[str, Array], **_: Any) -> dict[str, Array]:
            found = self.nets.net("lm_head").run(inputs, raw=True)
            return {"token_id": np.array([[best(next(iter(found.values()))[0])]], np.int32)}

    def searching(net: Bm168xNet) -> Bm168xNet:
        (stage,) = net.stages
        output = replace(stage.outputs[0], name="token_id", dtype="int32", shape=(1, 1))
        return replace(net, stages=[replace(stage, outputs=[output])]) if net.name == "lm_head" else net

    static = replace(model(LLAMA).static_part())
    one = Bundle.of(replace(static, nets=[searching(net) for net in static.nets]))
    assert one.vocabulary == 0
    generator, wanted = Generator(one, Head(Session(static))), np.load(FOLDER / f"{LLAMA}.tokens.npz")
    assert list(generator.generate(wanted["prompt"], 8)) == wanted["tokens"].tolist()
    with pytest.raises(UnsupportedError, match="no scores"):
        generator.logits(wanted["hidden"][:1])


def stages_of(name: str, change: Callable[[Bm168xStage], Bm168xStage]) -> Callable[[Bm168xNet], Bm168xNet]:
    return lambda net: replace(net, stages=[change(one) for one in net.stages]) if net.name == name else net


def without(name: str) -> Callable[[Bm168xNet], Bm168xNet | None]:
    return lambda net: None if net.name == name else net


def moved(stage: Bm168xStage) -> Bm168xStage:
    *others, values = stage.inputs
    return replace(stage, inputs=[*others, replace(values, address=values.address + 64 * values.shape[1])])


NO_BUNDLES: list[tuple[Callable[[Bm168xNet], Bm168xNet | None], str]] = [
    (without("embedding_cache"), "there is no net 'embedding_cache'"),
    (without("block_cache_0"), "there is no net 'block_cache_0'"),
    (without("block_1"), "there is no net 'block_1'"),
    (
        stages_of("lm_head", lambda one: replace(one, inputs=[replace(one.inputs[0], shape=(1, 64))])),
        "input 'hidden_states' of net 'lm_head' is 1x64 of bfloat16, not 1x128 of bfloat16",
    ),
    (
        stages_of(
            "block_1", lambda one: replace(one, inputs=[replace(one.inputs[0], dtype="float16"), *one.inputs[1:]])
        ),
        "is 1x48x128 of float16, not 1xSx128 of bfloat16",
    ),
    (stages_of("block_0", lambda one: replace(one, inputs=one.inputs[:2])), "net 'block_0' has 2 inputs, not 3"),
    (
        stages_of("block_cache_0", lambda one: replace(one, inputs=[*one.inputs[:3], *one.inputs[4:], one.inputs[0]])),
        "is 1x1x128 of bfloat16, not 1x[0-9]+x2x64 of bfloat16",
    ),
    (stages_of("block_cache_1", moved), "have the cache 'history_v' in different places"),
    (
        lambda net: replace(net, stages=net.stages[:2]) if net.name == "block_cache_1" else net,
        r"caches of \[.*\] tokens, block_cache_0 \[16, 32, 48\]",
    ),
]


@pytest.mark.parametrize(("change", "reason"), NO_BUNDLES)
def test_nets_that_do_not_fit_are_no_bundle(change: Callable[[Bm168xNet], Bm168xNet | None], reason: str) -> None:
    with pytest.raises(FileFormatError, match=rf"no bundle of a language model: .*{reason}"):
        Bundle.of(changed(QWEN, change))


def test_caches_that_do_not_last_are_refused() -> None:
    """As after the vendor's `model_tool --extract`, which loses the address mode."""
    inside = stages_of("block_cache_0", lambda one: replace(one, io_address=0, io_size=0))
    with pytest.raises(FileFormatError, match="'history_k' of net 'block_cache_0' does not last"):
        Bundle.of(changed(QWEN, lambda net: replace(inside(net), address_mode=BASIC)))
    with pytest.raises(UnsupportedError, match="net 'block_cache_1' is dynamic"):
        Bundle.of(changed(QWEN, made_dynamic("block_cache_1")))


def test_the_example_prints_tokens_or_a_sentence(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "examples" / "llm_bundle.py"
    wanted, file = np.load(FOLDER / f"{LLAMA}.tokens.npz"), tmp_path / "bundle.bmodel"
    file.write_bytes(content(LLAMA))

    def run(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
        prompt = ",".join(map(str, wanted["prompt"]))
        return subprocess.run([sys.executable, str(script), str(path), prompt, *words], capture_output=True, text=True)

    done = run(file, "--count", "3")
    assert [int(line) for line in done.stdout.split()] == wanted["tokens"].tolist()[:3]
    file.write_bytes(np.load(FOLDER / "products.npz")["mm1_W4F16.bmodel"].tobytes())
    done = run(file)
    assert done.returncode == 1 and done.stderr.startswith(f"{file}: no bundle of a language model: there is no net")
    with pytest.raises(BMError, match="no bundle"):
        Bundle.load(file)
