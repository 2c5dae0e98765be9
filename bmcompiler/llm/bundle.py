"""What a bundle consists of: nets by name, tensors by place, sizes that agree (bm1684x-llm.md 1 and 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bmcompiler import bmodel
from bmcompiler.bmodel import BModel, Stage, TensorInfo
from bmcompiler.errors import BMError, FileFormatError, UnsupportedError
from bmcompiler.files.store import StrPath
from bmcompiler.llm.config import read_json
from bmcompiler.llm.heads import GREEDY, SAMPLE
from bmcompiler.llm.text import BESIDE

HALVES = ("float16", "bfloat16")
Names = tuple[tuple[str, ...], tuple[str, ...]]
"""Names of the inputs and the outputs of a net, in order: tools of several versions name them differently."""

# Type and sizes of inputs and outputs. S: tokens of a prompt, T: rows of a cache, R: of all of it, H: width of a hidden
# state, K: heads of keys and values, D: their width, V: size of the vocabulary, C: tokens to draw from.
_FORMS = {
    "embedding": (("int32 1 S",), ("half 1 S H",)),
    "embedding_cache": (("int32 1 1",), ("half 1 1 H",)),
    "block": (("half 1 S H", "int32 1 S", "half 1 1 S S"), ("half 1 S H", "half 1 S K D", "half 1 S K D")),
    "block_cache": (
        ("half 1 1 H", "int32 1 1", "half 1 1 1 T+1", "half 1 T K D", "half 1 T K D"),
        ("half 1 1 H", "half 1 1 K D", "half 1 1 K D"),
    ),
    "block_kv": (
        ("half 1 S H", "int32 1 S", "half 1 1 S R+S", "half 1 R K D", "half 1 R K D"),
        ("half 1 S H", "half 1 S K D", "half 1 S K D"),
    ),
    "lm_head": (("half 1 H",), ("float32 1 V",)),
    GREEDY: (("float32 1 V",), ("int32 1 1",)),
    SAMPLE: (
        ("float32 1 V", "int32 1 T", "float32 1", "float32 1", "int32 1", "float32 1"),
        ("float32 1 C", "int32 1 C"),
    ),
}
_TOKEN = (*_FORMS["lm_head"][:1], ("int32 1 1",))
_SAYS_TOKENS = (("config.json", ""), ("config.json", "text_config"), ("genai_config.json", "model"))
"""Files, and the part of them that has `vocab_size`."""

_OF_STAGES = "TS"  # each has its own
_HISTORIES = slice(3, 5)  # among the inputs of block_cache


@dataclass(frozen=True)
class Bundle:
    """The nets of a language model, checked, without what is dynamic.

    Attributes:
        model: the nets without dynamic subnets, whose commands only firmware can make.
        layers: blocks, each with a net `block_I` for prompts and `block_cache_I` for one more token.
        half: type of hidden states and caches, "float16" or "bfloat16".
        prompts: tokens that the stages of the nets for prompts take at once, ascending; none where they are dynamic.
        rows: tokens in the caches that each stage of `block_cache_I` reads, ascending; the last is the room there is.
        hidden: elements of a hidden state. heads, width: of the keys and values of a token.
        vocabulary: how many scores lm_head gives, one for each token; 0 where it gives the best token.
        candidates: tokens that `sample_head` gives to draw from, and seen: those before that it looks at; 0 without it.
        goes_on: there are nets `block_kv_I`, for tokens of a prompt behind those in the caches.
        dynamic: names of the nets that are dynamic or end so.
        names: of tensors, by net.
        tokens: how many there are, by the scores or by the folder `config` beside the file; 0 where neither says it.
    """

    model: BModel
    layers: int
    half: str
    prompts: tuple[int, ...]
    rows: tuple[int, ...]
    hidden: int
    heads: int
    width: int
    vocabulary: int
    candidates: int
    seen: int
    goes_on: bool
    dynamic: tuple[str, ...]
    names: Mapping[str, Names]
    tokens: int = 0

    @staticmethod
    def load(path: StrPath) -> Bundle:
        """The bundle in a model file. Raises as `of`, FileFormatError for no model file, OSError."""
        try:
            found = Bundle.of(bmodel.load(path))
        except BMError as error:
            raise error.located(file=path) from None
        return found if found.tokens else replace(found, tokens=_told_beside(Path(path).parent / BESIDE))

    @staticmethod
    def of(model: BModel) -> Bundle:
        """The nets of a model as a bundle.

        Raises:
            FileFormatError: a net is missing, or its tensors do not fit those of the others.
            UnsupportedError: a net that tokens cannot be made without is dynamic.
        """
        dynamic = tuple(dict.fromkeys(stage.net for stage in model.stages() if stage.dynamic))
        static = model.static_part() if dynamic else model
        nets: dict[str, list[Stage]] = {}
        for stage in static.stages():
            nets.setdefault(stage.net, []).append(stage)
        known = {*nets, *dynamic}
        layers = sum(name.startswith("block_cache_") for name in known)
        blocks = [f"block_{layer}" for layer in range(layers)]
        cached = [f"block_cache_{layer}" for layer in range(max(1, layers))]
        needed = ["embedding", "embedding_cache", "lm_head", *cached]
        _refuse_missing([*needed, *blocks], known)
        _refuse_dynamic([name for name in needed if name not in nets])
        wanted = needed + (blocks if all(name in nets for name in blocks) else [])
        going_on = [name for name in (f"block_kv_{layer}" for layer in range(layers)) if name in nets]
        wanted += going_on + [name for name in (GREEDY, SAMPLE) if name in nets]
        agreed = _Agreed()
        rows = {name: tuple(sorted(agreed.net(stage) for stage in nets[name])) for name in wanted}
        for name in cached:
            _check_caches(nets[name], rows[name], rows[cached[0]])
        if going_on and (len(going_on) < layers or agreed.sizes["R"] != rows[cached[0]][-1]):
            raise _no_bundle("not all layers have a net 'block_kv_I' for the whole cache")
        for name in [*(blocks if blocks[0] in wanted else []), *going_on]:
            if rows[name] != rows["embedding"]:
                takes = f"prompts of {list(rows[name])} tokens, embedding {list(rows['embedding'])}"
                raise _no_bundle(f"net '{name}' takes {takes}")
        sizes = agreed.sizes
        return Bundle(
            model=static,
            layers=layers,
            half=agreed.half,
            prompts=rows["embedding"] if blocks[0] in wanted else (),
            rows=rows[cached[0]],
            hidden=sizes["H"],
            heads=sizes["K"],
            width=sizes["D"],
            vocabulary=sizes.get("V", 0),
            tokens=sizes.get("V", 0),
            candidates=sizes.get("C", 0),
            seen=max(rows.get(SAMPLE, (0,))),
            goes_on=bool(going_on),
            dynamic=dynamic,
            names={name: _names(nets[name][0]) for name in wanted},
        )

    @property
    def prompt(self) -> int:
        """Most tokens of a prompt at once; 0 where the nets for prompts are dynamic."""
        return self.prompts[-1] if self.prompts else 0

    def stage_rows(self, position: int) -> int:
        """Rows of the smallest stage with room for the keys and values of token number `position`; 0 where none has."""
        return next((rows for rows in self.rows if rows > position), 0)


def _told_beside(folder: Path) -> int:
    """How many tokens the small files of a model say there are; 0 without them."""
    for file, key in _SAYS_TOKENS:
        with suppress(FileFormatError):
            whole = read_json(folder / file)
            facts = whole.get(key) if key else whole
            count = facts.get("vocab_size") if isinstance(facts, dict) else None
            if isinstance(count, int) and count > 0:
                return count
    return 0


class _Agreed:
    """Sizes and types that the nets seen so far have, by symbol."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.half = ""

    def net(self, stage: Stage) -> int:
        """Compare a stage with its form; its T or S, 0 where it has none. Raises FileFormatError."""
        for symbol in _OF_STAGES:
            self.sizes.pop(symbol, None)
        form = _FORMS[stage.net.rstrip("0123456789").rstrip("_")]
        if stage.net == "lm_head" and stage.outputs and stage.outputs[0].dtype == "int32":
            form = _TOKEN
        for side, tensors, words in zip(("inputs", "outputs"), (stage.inputs, stage.outputs), form, strict=True):
            if len(tensors) != len(words):
                raise _no_bundle(f"net '{stage.net}' has {len(tensors)} {side}, not {len(words)}")
            for tensor, word in zip(tensors, words):
                if not self._fits(tensor, word.split()):
                    shape = "x".join(map(str, tensor.shape))
                    raise _no_bundle(
                        f"{side[:-1]} '{tensor.name}' of net '{stage.net}' is {shape} of {tensor.dtype}, "
                        f"not {self._said(word.split())}"
                    )
        return next((self.sizes[symbol] for symbol in _OF_STAGES if symbol in self.sizes), 0)

    def _fits(self, tensor: TensorInfo, word: Sequence[str]) -> bool:
        kind, *sizes = word
        if kind == "half" and not self.half and tensor.dtype in HALVES:
            self.half = tensor.dtype
        if tensor.dtype != (self.half if kind == "half" else kind) or len(tensor.shape) != len(sizes):
            return False
        return all(self._size(size, found) == found for size, found in zip(sizes, tensor.shape))

    def _size(self, word: str, found: int) -> int:
        """What a size must be; a symbol not seen before becomes what is found."""
        if word.isdigit():
            return int(word)
        symbol, _, more = word.partition("+")
        added = int(more) if more.isdigit() else self.sizes.get(more, 0)
        return self.sizes.setdefault(symbol, found - added) + added

    def _said(self, word: Sequence[str]) -> str:
        """A form in words, with the sizes that are known."""
        kind, *sizes = word
        shown = [str(self._size(size, 0)) if size.partition("+")[0] in self.sizes else size for size in sizes]
        return f"{'x'.join(shown)} of {kind if kind != 'half' else self.half or ' or '.join(HALVES)}"


def _names(stage: Stage) -> Names:
    inputs, outputs = (tuple(tensor.name for tensor in tensors) for tensors in (stage.inputs, stage.outputs))
    return inputs, outputs


def _no_bundle(reason: str) -> FileFormatError:
    return FileFormatError(
        f"no bundle of a language model: {reason}", remedy="pass a model file with the nets that llm_convert writes"
    )


def _refuse_missing(needed: Sequence[str], known: set[str]) -> None:
    missing = [name for name in needed if name not in known]
    if missing:
        raise _no_bundle(f"there is no net '{missing[0]}'")


def _refuse_dynamic(missing: Sequence[str]) -> None:
    if missing:
        raise UnsupportedError(
            f"net '{missing[0]}' is dynamic: its commands are made by the firmware, which is not simulated",
            remedy="compile the language model with static nets",
        )


def _check_caches(stages: Sequence[Stage], rows: Sequence[int], of_first: Sequence[int]) -> None:
    """All stages read one cache, which lasts. Raises FileFormatError."""
    net = stages[0].net
    if len(set(rows)) != len(rows) or rows != of_first:
        raise _no_bundle(
            f"the stages of net '{net}' have caches of {list(rows)} tokens, block_cache_0 {list(of_first)}"
        )
    for stage in stages:
        for tensor, first in zip(stage.inputs[_HISTORIES], stages[0].inputs[_HISTORIES]):
            if not tensor.kept:
                raise _no_bundle(
                    f"input '{tensor.name}' of net '{net}' does not last: its address mode is not io_alone"
                )
            if tensor.offset != first.offset:
                raise _no_bundle(f"the stages of net '{net}' have the cache '{tensor.name}' in different places")
