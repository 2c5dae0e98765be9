"""The trained model of models/small_llama: perplexity by torch, tokens with and without a cache, nets of 16 bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from bmcompiler.interpreter import run_module
from bmcompiler.llm.checkpoint import Checkpoint
from bmcompiler.llm.float_model import FloatModel, perplexity
from bmcompiler.llm.model import open_model
from bmcompiler.llm.nets import MASKED, build_net
from bmcompiler.llm.precision import Precision
from bmcompiler.llm.scales import activation_scales

FOLDER = Path(__file__).parents[2] / "models" / "small_llama"
BEGIN, WINDOW = 0, 512
PERPLEXITY = 23.478364
"""Of valid.txt in float32, as torch computed it (models/small_llama.py)."""
PROMPT = "The compiler"
COUNT = 200


def tokens_of(text: str) -> list[int]:
    return Tokenizer.from_file(str(FOLDER / "tokenizer.json")).encode(text).ids


def valid() -> list[int]:
    return tokens_of((FOLDER / "valid.txt").read_text())


def generated() -> list[int]:
    """The prompt and the most probable tokens behind it, with a cache."""
    model = FloatModel(open_model(FOLDER))
    cache, ids = model.new_cache(), [BEGIN, *tokens_of(PROMPT)]
    new = ids
    for _ in range(COUNT):
        new = [int(model.logits(model.states(new, cache)[-1:]).argmax())]
        ids = [*ids, *new]
    return ids


def test_perplexity_is_what_torch_computed() -> None:
    found = perplexity(FloatModel(open_model(FOLDER), WINDOW + 1), valid(), WINDOW, [BEGIN])
    assert abs(found / PERPLEXITY - 1) < 1e-4


def test_weights_are_read_as_their_library_reads_them() -> None:
    checkpoint = Checkpoint(FOLDER)
    wanted = load_file(FOLDER / "model.safetensors")
    assert set(checkpoint) == set(wanted)
    for name, values in wanted.items():
        np.testing.assert_array_equal(checkpoint.read(name), values)


@pytest.mark.parametrize("bits, limit", [(8, 0.005), (4, 0.03)])
def test_quantized_weights_keep_the_perplexity(bits: int, limit: float) -> None:
    """Groups of 64; those of 4 bits are made with scales by what the licence is to the model."""
    model, precision = open_model(FOLDER), Precision("f16", bits)
    samples = [BEGIN, *tokens_of((FOLDER.parents[1] / "LICENSE").read_text())[: WINDOW - 1]]
    scaled = activation_scales(model, precision, samples) if bits == 4 else model
    found = perplexity(FloatModel(scaled, WINDOW + 1, precision), valid(), WINDOW, [BEGIN])
    assert 0 < abs(found / PERPLEXITY - 1) < limit


@pytest.mark.slow
def test_tokens_with_a_cache_are_those_of_full_recomputation() -> None:
    ids, model = generated(), FloatModel(open_model(FOLDER))
    again = model.logits(model.states(ids[:-1])).argmax(-1).tolist()
    assert again[-COUNT:] == ids[-COUNT:]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f16"])
def test_nets_of_the_bundle_give_the_same_tokens(dtype: str) -> None:
    """All tokens one by one through embedding_cache, block_cache_I and lm_head."""
    wanted, model, rows = generated(), open_model(FOLDER), 256
    names = ["embedding_cache", *(f"block_cache_{i}" for i in range(4)), "lm_head"]
    embed, *blocks, head = (build_net(model, name, length=rows, precision=Precision(dtype)) for name in names)
    shape = tuple(blocks[0].main.arguments[3].shape)
    history = [{f"history_{each}": np.zeros(shape, np.float16) for each in "kv"} for _ in blocks]
    ids = wanted[:-COUNT]
    for place in range(len(wanted) - 1):
        state = run_module(embed, {"input_ids": np.array([[ids[place]]], np.int32)})["embedding_cache"]
        mask = np.full((1, 1, 1, rows + 1), MASKED, np.float16)
        mask[..., :place] = mask[..., -1] = 0
        at = {"position_ids": np.array([[place]], np.int32), "attention_mask": mask}
        for block, past in zip(blocks, history):
            found = run_module(block, {"input_states": state, **at, **past})
            state = found["output_states"]
            for each in "kv":
                past[f"history_{each}"][:, place] = found[f"{each}_cache"][:, 0]
        if place + 1 == len(ids):
            ids.append(int(run_module(head, {"hidden_states": state[:, 0]})["token_id"][0, 0]))
    assert ids == wanted
