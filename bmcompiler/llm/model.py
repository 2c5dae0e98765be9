"""A language model: what its configuration says and its weights hold, layer by layer."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bmcompiler.llm.checkpoint import Checkpoint
from bmcompiler.llm.config import Architecture, read_architecture
from bmcompiler.llm.linear import CodeScheme, LinearLayer, check_linear, read_linear, scheme_of
from bmcompiler.numeric.arrays import Array, Floats
from bmcompiler.plugins.registry import entry_points, lookup

_PREFIXES = ("model.", "language_model.model.", "model.language_model.")
"""What stands before the names of tensors: of a language model, and of the language half of another."""


READERS = "bmcompiler.llm_readers"

LINEAR = ("q", "k", "v", "o", "gate", "up", "down")
"""Linear layers of a decoder layer, as `LayerWeights` calls them."""


class LayerWeights(NamedTuple):
    """A decoder layer. Norms are their factors, (hidden) or (head_dim), None where there is none."""

    attention_norm: Floats | None
    attention_out_norm: Floats | None
    mlp_norm: Floats | None
    mlp_out_norm: Floats | None
    q_norm: Floats | None
    k_norm: Floats | None
    q: LinearLayer
    k: LinearLayer
    v: LinearLayer
    o: LinearLayer
    gate: LinearLayer
    up: LinearLayer
    down: LinearLayer


class _Part(NamedTuple):
    """A linear layer of the model in the checkpoint: name, outputs, inputs, whether it has a bias."""

    name: str
    outputs: int
    depth: int
    bias: bool


@dataclass(frozen=True)
class LanguageModel(ABC):
    """A decoder whose weights are read when they are asked for; `open_model` makes it.

    Attributes:
        path: the folder or file that `open_model` took.
    """

    path: Path
    architecture: Architecture

    @property
    def folder(self) -> Path:
        """Where its small files lie."""
        return self.path if self.path.is_dir() else self.path.parent

    @abstractmethod
    def layer(self, index: int) -> LayerWeights:
        """The weights of a layer. Raises FileFormatError, UnsupportedError."""

    @abstractmethod
    def embedding(self) -> Array:
        """The table of embeddings (vocabulary, hidden)."""

    @abstractmethod
    def head(self) -> LinearLayer:
        """What gives the logits."""

    @abstractmethod
    def final_norm(self) -> Floats:
        """The factors behind the last layer, (hidden)."""

    def files(self) -> set[Path]:
        """What it is read from."""
        return {self.path}

    @abstractmethod
    def let_go(self) -> None:
        """What was read need not stay in memory."""


@dataclass(frozen=True)
class DerivedModel(LanguageModel):
    """Another model, of which a class that derives from this one changes the layers."""

    base: LanguageModel

    def layer(self, index: int) -> LayerWeights:
        return self.base.layer(index)

    def embedding(self) -> Array:
        return self.base.embedding()

    def head(self) -> LinearLayer:
        return self.base.head()

    def final_norm(self) -> Floats:
        return self.base.final_norm()

    def files(self) -> set[Path]:
        return self.base.files()

    def let_go(self) -> None:
        self.base.let_go()


@dataclass(frozen=True)
class FolderModel(LanguageModel):
    """A folder with `config.json` and weights. In memory are names and places alone."""

    checkpoint: Checkpoint
    prefix: str
    scheme: CodeScheme | None

    def layer(self, index: int) -> LayerWeights:
        """The weights of a layer. Floats are mapped, codes unpacked. Raises FileFormatError, UnsupportedError."""
        facts, root = self.architecture, f"{self.prefix}layers.{index}."
        norms = facts.family.norms
        each = {name: self._norm(root + name) for name in _norm_names(facts)}
        parts = {part.name: self._linear(root, part) for part in _linears(facts)}
        if facts.family.fused:
            queries, keys = facts.heads * facts.head_dim, facts.kv_heads * facts.head_dim
            whole, both = parts["self_attn.qkv_proj"], parts["mlp.gate_up_proj"]
            q, rest = whole.rows(slice(queries)), whole.rows(slice(queries, None))
            k, v = rest.rows(slice(keys)), rest.rows(slice(keys, None))
            gate, up = both.rows(slice(facts.inner)), both.rows(slice(facts.inner, None))
        else:
            q, k, v = (parts[f"self_attn.{name}_proj"] for name in "qkv")
            gate, up = parts["mlp.gate_proj"], parts["mlp.up_proj"]
        return LayerWeights(
            each.get(norms.attention), each.get(norms.attention_out), each.get(norms.mlp), each.get(norms.mlp_out),
            each.get("self_attn.q_norm"), each.get("self_attn.k_norm"),
            q, k, v, parts["self_attn.o_proj"], gate, up, parts["mlp.down_proj"],
        )  # fmt: skip

    def embedding(self) -> Array:
        """The table of embeddings (vocabulary, hidden), mapped, in the type of the checkpoint."""
        return self.checkpoint.read(f"{self.prefix}embed_tokens.weight")

    def head(self) -> LinearLayer:
        """What gives the logits; the table of embeddings where they are tied."""
        if self.architecture.tied:
            return LinearLayer(self.embedding(), self.architecture.hidden)
        return read_linear(self.checkpoint, self._head_name(), self.architecture.hidden, self.scheme, False)

    def final_norm(self) -> Floats:
        """The factors behind the last layer, (hidden)."""
        return self._norm(f"{self.prefix}norm")

    def files(self) -> set[Path]:
        """`config.json`, and where tensors lie."""
        return {place.file for place in self.checkpoint.places.values()} | {self.path / "config.json"}

    def let_go(self) -> None:
        """What was read need not stay in memory; it is read from the files again when it is needed."""
        self.checkpoint.let_go()

    def check(self) -> None:
        """Whether all tensors are there with the shapes that `config.json` asks for. Raises FileFormatError."""
        facts = self.architecture
        self.checkpoint.place(f"{self.prefix}embed_tokens.weight", [facts.vocabulary, facts.hidden])
        self.checkpoint.place(f"{self.prefix}norm.weight", [facts.hidden])
        if not facts.tied:
            check_linear(self.checkpoint, self._head_name(), facts.vocabulary, facts.hidden, self.scheme, False)
        for index in range(facts.layers):
            root = f"{self.prefix}layers.{index}."
            for name, size in _norm_names(facts).items():
                self.checkpoint.place(f"{root}{name}.weight", [size])
            for name, outputs, depth, bias in _linears(facts):
                check_linear(self.checkpoint, root + name, outputs, depth, self.scheme, bias)

    def _head_name(self) -> str:
        return "language_model.lm_head" if "language_model.lm_head.weight" in self.checkpoint else "lm_head"

    def _norm(self, name: str) -> Floats:
        found = self.checkpoint.read(f"{name}.weight").astype(np.float32)
        return found + np.float32(self.architecture.family.norm_offset)

    def _linear(self, root: str, part: _Part) -> LinearLayer:
        return read_linear(self.checkpoint, root + part.name, part.depth, self.scheme, part.bias)


def open_model(source: str | os.PathLike[str]) -> LanguageModel:
    """Read `config.json` and the headers of the weights, and hold the two together; or the graph of a model file.

    Args:
        source: a folder as Hugging Face writes them, or a model file of a kind that a reader of the entry points
            `bmcompiler.llm_readers` is called like (`onnx`), or a folder with one such file and no `config.json`.

    Raises:
        FileFormatError: a file is missing, damaged or cut off, a tensor is missing or has another shape.
        UnsupportedError: a family, an activation, a rotary embedding or a quantization that nobody knows.
    """
    path = Path(source)
    file = _model_file(path)
    if file is not None:
        read: Callable[[Path, Path], LanguageModel] = lookup(READERS, file.suffix[1:], "reader of language models")
        return read(path, file)
    architecture = read_architecture(path)
    checkpoint = Checkpoint(path)
    prefix = next((each for each in _PREFIXES if f"{each}embed_tokens.weight" in checkpoint), _PREFIXES[0])
    model = FolderModel(
        path, architecture, checkpoint, prefix, scheme_of(architecture.quantization, path / "config.json")
    )
    model.check()
    return model


def architecture_of(source: str | os.PathLike[str]) -> Architecture:
    """The sizes and numbers of a model; of a folder `config.json` is all that is read. Raises as `open_model`."""
    path = Path(source)
    return read_architecture(path) if _model_file(path) is None else open_model(path).architecture


def _model_file(path: Path) -> Path | None:
    """The one file that holds a whole model, None where `path` is a folder of another kind."""
    kinds = entry_points(READERS)
    if path.is_dir() and not (path / "config.json").is_file():
        found = [each for each in sorted(path.iterdir()) if each.suffix[1:] in kinds]
        return found[0] if len(found) == 1 else None
    return path if path.suffix[1:] in kinds and path.is_file() else None


def float_shapes(facts: Architecture, prefix: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of all tensors of a checkpoint whose weights are floats."""
    yield f"{prefix}embed_tokens.weight", (facts.vocabulary, facts.hidden)
    yield f"{prefix}norm.weight", (facts.hidden,)
    yield "lm_head.weight", (facts.vocabulary, facts.hidden)
    for index in range(facts.layers):
        root = f"{prefix}layers.{index}."
        for name, size in _norm_names(facts).items():
            yield f"{root}{name}.weight", (size,)
        for name, outputs, depth, bias in _linears(facts):
            yield f"{root}{name}.weight", (outputs, depth)
            if bias:
                yield f"{root}{name}.bias", (outputs,)


def _norm_names(facts: Architecture) -> dict[str, int]:
    """Norms of a layer with their sizes."""
    norms = facts.family.norms
    around = (norms.attention, norms.attention_out, norms.mlp, norms.mlp_out)
    heads = ("self_attn.q_norm", "self_attn.k_norm") if facts.family.head_norms else ()
    return {**{name: facts.hidden for name in around if name}, **dict.fromkeys(heads, facts.head_dim)}


def _linears(facts: Architecture) -> Iterator[_Part]:
    """LinearLayer layers of a layer, as they lie in the checkpoint."""
    hidden, queries, keys = facts.hidden, facts.heads * facts.head_dim, facts.kv_heads * facts.head_dim
    if facts.family.fused:
        yield _Part("self_attn.qkv_proj", queries + 2 * keys, hidden, facts.qkv_bias)
        yield _Part("mlp.gate_up_proj", 2 * facts.inner, hidden, facts.mlp_bias)
    else:
        for name, outputs in (("q", queries), ("k", keys), ("v", keys)):
            yield _Part(f"self_attn.{name}_proj", outputs, hidden, facts.qkv_bias)
        for name in ("gate", "up"):
            yield _Part(f"mlp.{name}_proj", facts.inner, hidden, facts.mlp_bias)
    yield _Part("self_attn.o_proj", hidden, queries, facts.out_bias)
    yield _Part("mlp.down_proj", hidden, facts.inner, facts.mlp_bias)
