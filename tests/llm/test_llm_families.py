"""Decoders of each family against what transformers computed (tools/record_llm_families.py)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from llm.model_folders import seeded, write_folder

from bmcompiler.interpreter import run_module
from bmcompiler.llm.families import FAMILIES
from bmcompiler.llm.float_model import FloatModel
from bmcompiler.llm.model import LanguageModel, open_model
from bmcompiler.llm.nets import MASKED, build_net
from bmcompiler.llm.precision import Precision

RECORDED = np.load(Path(__file__).parent.parent / "data" / "llm_families.npz")
TOKENS = RECORDED["tokens"].tolist()
CASES = [name.removesuffix("/logits") for name in RECORDED if name.endswith("/logits")]
ROWS = {"phi3-short": 16, "llama-dynamic": 14}
"""Positions of the tables, where they decide."""


def folder_of(case: str, parent: Path) -> LanguageModel:
    config = json.loads(str(RECORDED[f"{case}/config"]))
    shapes = json.loads(str(RECORDED[f"{case}/shapes"]))
    offset = 1.0 if "gemma" in case else 0.0
    tensors = {name: seeded(name, tuple(shape), case, offset) for name, shape in shapes.items()}
    return open_model(write_folder(parent / case, config, tensors))


def test_every_family_is_recorded() -> None:
    assert {json.loads(str(RECORDED[f"{case}/config"]))["model_type"] for case in CASES} == set(FAMILIES)


@pytest.mark.parametrize("case", CASES)
def test_the_reference_computes_what_transformers_does(case: str, tmp_path: Path) -> None:
    reference = FloatModel(folder_of(case, tmp_path), ROWS.get(case, 64))
    wanted = RECORDED[f"{case}/logits"]
    cache = reference.new_cache()
    first = reference.logits(reference.states(TOKENS[:9], cache))
    rest = [reference.logits(reference.states([token], cache)) for token in TOKENS[9:]]
    error = np.abs(np.concatenate([first, *rest]) - wanted).max()
    assert error < 2e-5 * np.abs(wanted).max()
    assert cache.length == len(TOKENS)


def logits_of_nets(model: LanguageModel, rows: int, prompt: int, dtype: str) -> np.ndarray:
    """(tokens - prompt + 1, vocabulary): of the last token of a prompt, and of those behind it one by one."""
    layers, padded = range(model.architecture.layers), prompt + 2
    precision = Precision(dtype)

    def net(name: str, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        module = build_net(model, name, length=padded, cache=rows, precision=precision, logits=True)
        return run_module(module, inputs)

    def masked(*shape: int) -> np.ndarray:
        return np.full((1, 1, *shape), MASKED, state.dtype)

    ids = np.array([[*TOKENS[:prompt], 0, 0]], np.int32)
    state = net("embedding", input_ids=ids)["embedding"]
    positions, mask = np.array([[*range(prompt), 0, 0]], np.int32), masked(padded, padded)
    mask[0, 0][np.tri(padded, dtype=bool)] = 0
    history = []
    for i in layers:
        found = net(f"block_{i}", input_states=state, position_ids=positions, attention_mask=mask)
        state = found["output_states"]
        shape = (1, rows, *found["k_cache"].shape[2:])
        history.append({f"history_{each}": np.zeros(shape, state.dtype) for each in "kv"})
        for each in "kv":
            history[i][f"history_{each}"][:, :prompt] = found[f"{each}_cache"][:, :prompt]
    out = [net("lm_head", hidden_states=state[:, prompt - 1])["lm_head.reshape_f32"]]
    for place, token in enumerate(TOKENS[prompt:], prompt):
        state = net("embedding_cache", input_ids=np.array([[token]], np.int32))["embedding_cache"]
        mask = masked(1, rows + 1)
        mask[..., :place] = mask[..., -1] = 0
        for i in layers:
            at = {"position_ids": np.array([[place]], np.int32), "attention_mask": mask}
            found = net(f"block_cache_{i}", input_states=state, **at, **history[i])
            state = found["output_states"]
            for each in "kv":
                history[i][f"history_{each}"][:, place] = found[f"{each}_cache"][:, 0]
        out.append(net("lm_head", hidden_states=state[:, 0])["lm_head.reshape_f32"])
    return np.concatenate(out)


@pytest.mark.parametrize("case", CASES)
def test_the_nets_of_the_bundle_compute_it_too(case: str, tmp_path: Path) -> None:
    wanted = RECORDED[f"{case}/logits"][7:]
    found = logits_of_nets(folder_of(case, tmp_path), ROWS.get(case, 24), 8, "f32")
    assert np.abs(found - wanted).max() < 2e-5 * np.abs(wanted).max()


@pytest.mark.parametrize("dtype, limit", [("f16", 0.01), ("bf16", 0.08)])
@pytest.mark.parametrize("case", ["qwen2", "gemma3"])
def test_nets_of_16_bits_are_near(case: str, dtype: str, limit: float, tmp_path: Path) -> None:
    wanted = RECORDED[f"{case}/logits"][7:]
    found = logits_of_nets(folder_of(case, tmp_path), 24, 8, dtype)
    assert 0 < np.abs(found - wanted).max() < limit * np.abs(wanted).max()
