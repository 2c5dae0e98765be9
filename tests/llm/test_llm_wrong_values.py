"""Every option and argument of `bmnet-llm` with values that are wrong: one sentence, nothing left, no input changed."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree

import numpy as np
import pytest
from model_folders import small_config, small_tensors, write_folder
from tokenizers import Tokenizer, models, pre_tokenizers
from wrong_values import Walked, complaint, prepare, run_apart

from bmcompiler.bmodel import save
from bmcompiler.cli import llm
from bmcompiler.llm.compile import BundleOptions, compile_bundle

SOURCE = {"source": "model", "--length": "8"}
GIVEN = {
    "compile": {**SOURCE, "--output": "out.bmodel", "--check": "never"},
    "estimate": SOURCE,
    "run": {"bundle": "net.bmodel", "--tokens": "1,2,3", "--count": "2"},
    "eval": {"bundle": "net.bmodel", "--text": "text.txt", "--windows": "1", "--tokenizer": "model"},
}
"""What succeeds, by command."""
FEW = 60
"""Of all cases, one in so many is tried in every run."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work, config = tmp_path / "work", small_config(vocab_size=32, num_hidden_layers=1, torch_dtype="float16")
    model = write_folder(work / "model", config, small_tensors(config, np.float16))
    tokenizer = Tokenizer(models.WordLevel({chr(97 + i): i for i in range(26)} | {"?": 26}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.save(str(model / "tokenizer.json"))
    save(compile_bundle(model, BundleOptions(length=8, check="never")).model, work / "net.bmodel")
    (work / "text.txt").write_text("the quick brown fox")
    return work


@pytest.mark.parametrize("every", [FEW, pytest.param(1, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("name", GIVEN)
def test_what_cannot_be_is_one_sentence(name: str, every: int, folder: Path) -> None:
    prepare(folder, folder / ("net.bmodel" if "bundle" in GIVEN[name] else "model/config.json"))
    walked = Walked(llm.cli.commands[name], "bmnet-llm", GIVEN[name])
    status, said = run_apart(walked, walked.line(), folder)
    assert status == 0, said
    if name == "compile":
        (folder / "out.bmodel").unlink()
        rmtree(folder / "config")
    cases = list(walked.cases())
    assert len(cases) > FEW
    wrong = {" ".join(map(ascii, line)): complaint(walked, line, folder) for line in cases[::every]}
    assert not any(wrong.values()), {line: said for line, said in wrong.items() if said}
