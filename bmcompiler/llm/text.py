"""Text to tokens and back: `tokenizer.json` of a model folder, by the `tokenizers` library (pip install .[llm])."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from bmcompiler.errors import FileFormatError, UnsupportedError, UsageError
from bmcompiler.files.store import read_text
from bmcompiler.llm.config import read_json
from bmcompiler.spelling import spelled
from bmcompiler.text import is_broken

COPIED = (
    "config.json",
    "genai_config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
)
"""Small files of a folder that a bundle needs beside it, in the folder `config`, as the vendor's tool leaves them."""
BESIDE = "config"


def whole_text(file: Path) -> str:
    """What a text file holds. Raises FileFormatError for what is none, OSError."""
    try:
        return read_text(file)
    except UnicodeDecodeError:
        raise FileFormatError("is no text in UTF-8", file=file) from None


class Text:
    """The tokenizer of a folder.

    Raises:
        UnsupportedError: the library is not installed. FileFormatError: the folder has no tokenizer, or a damaged one.
    """

    def __init__(self, folder: Path, remedy: str | None = None) -> None:
        """`remedy`: what to do where the folder has no tokenizer."""
        self.folder, file = folder, folder / "tokenizer.json"
        if not file.is_file():
            raise FileFormatError("there is no tokenizer", file=file, remedy=remedy)
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise UnsupportedError(
                "text needs the library tokenizers", remedy='pip install "bmcompiler[llm]"'
            ) from None
        try:
            self._tokenizer: Any = Tokenizer.from_file(str(file))
        except Exception as error:  # the library has no type of its own for it
            raise FileFormatError(f"is no tokenizer: {error}", file=file) from None

    def tokens(self, text: str, *, special: bool = True) -> list[int]:
        """Numbers of a text; `special`: with those that begin every text of the model.

        Raises UsageError for half a character, as a shell gives what is no UTF-8.
        """
        if is_broken(text):
            raise UsageError("the text is not in UTF-8", remedy="give it in UTF-8")
        found: list[int] = self._tokenizer.encode(text, add_special_tokens=special).ids
        return found

    def pieces(self, tokens: Iterable[int]) -> Iterator[str]:
        """The text of tokens as they come; what is half a character waits for the rest."""
        so_far, shown = [], ""
        for token in tokens:
            so_far.append(token)
            whole: str = self._tokenizer.decode(so_far, skip_special_tokens=True)
            if not whole.endswith("\ufffd"):
                yield whole[len(shown) :]
                shown = whole

    def as_chat(self, said: Sequence[str]) -> str:
        """Questions and answers in turn, as a model's template puts them. Raises UnsupportedError, FileFormatError."""
        given = self.folder / "chat_template.jinja"
        file = given if given.is_file() else self.folder / "tokenizer_config.json"
        facts: Mapping[str, Any] = {} if file == given or not file.is_file() else read_json(file)
        template = whole_text(given) if file == given else facts.get("chat_template")
        if not isinstance(template, str):
            raise FileFormatError("there is no template for chats", file=file, remedy=f"leave out {spelled('chat')}")
        try:
            from jinja2 import TemplateError
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ImportError:
            raise UnsupportedError(
                "templates of chats need the library jinja2", remedy='pip install "bmcompiler[llm]"'
            ) from None
        special = {name: _named(facts.get(name)) for name in ("bos_token", "eos_token")}
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        roles = cycle(("user", "assistant"))
        messages = [{"role": role, "content": content} for role, content in zip(roles, said)]
        try:
            return environment.from_string(template).render(messages=messages, add_generation_prompt=True, **special)
        except TemplateError as error:
            raise FileFormatError(f"the template for chats fails: {error}", file=file) from None


def _named(token: Any) -> str:
    return token.get("content", "") if isinstance(token, dict) else token or ""


def end_tokens(folder: Path) -> set[int]:
    """Tokens after which a model has said all, by the first file of its folder that says it."""
    for name in ("generation_config.json", "config.json", "genai_config.json"):
        if (folder / name).is_file():
            facts = read_json(folder / name)
            inner = facts.get("model")
            found = (inner if isinstance(inner, dict) else facts).get("eos_token_id")
            if found is not None:
                return {int(each) for each in (found if isinstance(found, list) else [found])}
    return set()


def copy_config(folder: Path, model: Path) -> Path:
    """Put the small files of a folder beside a bundle. Returns where they are. Raises as `refuse_other_config`."""
    refuse_other_config(folder, model)
    to = model.parent / BESIDE
    to.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        if (folder / name).is_file():
            shutil.copyfile(folder / name, to / name)
    return to


def refuse_other_config(folder: Path, model: Path) -> None:
    """Raise FileFormatError where the small files beside a bundle are of another model."""
    to = model.parent / BESIDE
    for name in COPIED:
        source = folder / name
        if source.is_file() and (to / name).is_file() and source.read_bytes() != (to / name).read_bytes():
            raise FileFormatError(
                f"is of another model than {json.dumps(str(folder))}",
                file=to / name,
                remedy="write the bundle to a folder of its own",
            )
