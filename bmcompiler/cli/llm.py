"""bmnet-llm: language models, from a folder to tokens."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bmcompiler.cli.common import Number, Output, command_line, format_table, printable, progress
from bmcompiler.cli.options import worker_options
from bmcompiler.cli.quiet import quiet_option
from bmcompiler.errors import UsageError
from bmcompiler.text import some_names

if TYPE_CHECKING:
    from bmcompiler.llm.model import LanguageModel
    from bmcompiler.llm.precision import Precision

_SAMPLE, _SAMPLES = 512, 16  # tokens of a sample, and samples at most
_KINDS = [f"{bits}{half}" for bits in ("w4", "w8", "") for half in ("f16", "bf16")]
_COMPILE = """
\b
Examples:
  bmnet-llm compile Qwen2.5-0.5B-Instruct --quantize w4f16 --length 512 -o qwen/model.bmodel
  bmnet-llm compile llama --quantize f16 --length 128 --cache 512 -o llama/model.bmodel
  bmnet-llm compile llama --head token -o llama/model.bmodel
  bmnet-llm compile qwen-onnx/model.onnx --length 512 -o qwen/model.bmodel

MODEL is a folder with config.json and *.safetensors, or a model of ONNX Runtime GenAI (its file, or the folder with
that file), whose codes of 4 and 8 bits are kept. The nets have the names, tensors and address modes that the vendor's
runtime expects. Small files of the folder, tokenizer among them, are copied to `config` beside the bundle.
"""
_RUN = """
\b
Examples:
  bmnet-llm run qwen/model.bmodel --prompt "The history of the"
  bmnet-llm run qwen/model.bmodel --chat --prompt "What is a lane?" --temperature 0.7 --top-p 0.9 --seed 3
  bmnet-llm run qwen/model.bmodel --chat --prompt "What is a lane?" --prompt "And a halo?"
  bmnet-llm run model.bmodel --tokens 1,17,300,42 --count 8
"""
_OTHER_FOLDER = "name the model's folder with --tokenizer"
_MODEL = click.argument("source", metavar="MODEL", type=click.Path(path_type=Path))


def _options(command: Any) -> Any:
    """Types and lengths of a bundle."""
    for option in reversed((
        click.option("--quantize", type=click.Choice(_KINDS), help="Precision, of weights and activations.  "
                     "[default: f16 or bf16, as the folder]"),
        click.option("--group", default=64, show_default=True, type=click.IntRange(0), help="Inputs with a scale in "
                     "common; 0 = all of them."),
        click.option("--symmetric", is_flag=True, help="Zero points in the middle."),
        click.option("--head-bits", type=click.Choice(["4", "8"]), help="Of the weights that give the scores."),
        click.option("--length", default=512, show_default=True, type=click.IntRange(1), help="Tokens of a prompt "
                     "that are read at once."),
        click.option("--cache", type=click.IntRange(1), help="Tokens there is room for.  [default: --length]"),
    )):  # fmt: skip
        command = option(command)
    return command


@click.group()
def cli() -> None:
    """Compile language models, run them on the simulator, say what a board will take."""


def _precision(
    folder_dtype: str, quantize: str | None, group: int, symmetric: bool, head_bits: str | None
) -> Precision:
    from bmcompiler.llm.precision import Precision

    kind = quantize or ("bf16" if folder_dtype == "bf16" else "f16")
    bits = {"w4": 4, "w8": 8}.get(kind[:2])
    return Precision(
        kind.removeprefix(f"w{bits}"),
        bits,
        int(head_bits) if head_bits else None,
        group_size=group,
        symmetric=symmetric,
    )


@cli.command(epilog=_COMPILE)
@_MODEL
@click.option("-o", "--output", required=True, metavar="OUT.bmodel", type=Output(path_type=Path), help="The bundle.")
@_options
@click.option("--head", default="scores", show_default=True, type=click.Choice(["scores", "token"]), help="What the "
              "last net gives: scores of all tokens, or the best one.")  # fmt: skip
@click.option("--shorter", multiple=True, type=click.IntRange(1), help="A length with programs of its own, which take "
              "less time for prompts that fit; once for each.")  # fmt: skip
@click.option("--history", is_flag=True, help="Add nets that read tokens behind those of the caches at once: longer "
              "prompts, further turns of a chat.")  # fmt: skip
@click.option("--text", "samples", metavar="FILE", type=click.Path(path_type=Path), help="A text by which codes of 4 "
              "or 8 bits are chosen (GPTQ); without it the nearest are.")  # fmt: skip
@click.option(
    "--opt",
    default=2,
    show_default=True,
    type=click.IntRange(0, 2),
    help="0: serial commands; 1: transfers overlap; 2: all.",
)
@click.option("--check", default="auto", show_default=True, metavar="auto|never|always|N",
              help="Prove the nets before the bundle is written, on one sample or N.")  # fmt: skip
@click.option(
    "--workers", "jobs", default=1, show_default=True, type=click.IntRange(1), help="Processes that compile nets."
)
@click.option("--resume", "parts", metavar="FOLDER", type=click.Path(path_type=Path), help="Keep finished nets there; "
              "the same command again goes on with them.  [default: beside OUT while it is made]")  # fmt: skip
@quiet_option
def compile(
    source: Path, output: Path, head: str, shorter: tuple[int, ...], history: bool, samples: Path | None, opt: int,
    check: str, jobs: int, parts: Path | None, **given: Any,
) -> None:  # fmt: skip
    """Compile MODEL to a bundle of nets."""
    import tempfile

    from bmcompiler.bmodel import save
    from bmcompiler.files.kinds import BYTES
    from bmcompiler.files.store import check_output, make_folder
    from bmcompiler.llm.compile import BundleOptions, compile_bundle
    from bmcompiler.llm.groups import check_positions
    from bmcompiler.llm.model import open_model
    from bmcompiler.llm.text import copy_config, refuse_other_config

    start, model = time.perf_counter(), open_model(source)
    length, cache = given.pop("length"), given.pop("cache")
    precision = _precision(model.architecture.dtype, **given)
    options = BundleOptions(precision, length, tuple(sorted(shorter)), cache, history, head == "scores", opt, check)
    refuse_other_config(model.folder, output)
    check_positions(model.architecture, options, source)
    make_folder(output.parent)
    check_output(output, BYTES)
    taken: Path | LanguageModel = source if samples is None else _by_samples(model, precision, samples)
    with tempfile.TemporaryDirectory(prefix=f"{output.stem}.", dir=output.parent) as scratch:
        found = compile_bundle(taken, options, progress=progress, parts=parts or Path(scratch), jobs=jobs)
        bundle = found.model
        save(bundle, output)
    beside = copy_config(model.folder, output)
    blocks = sum(len(each) for each in bundle.weight_sets)
    click.echo(
        f"{output}: {len(bundle.stages())} nets, {blocks:,} bytes of weights, {output.stat().st_size:,} bytes; "
        f"small files in {beside}; {time.perf_counter() - start:.1f} s"
    )
    if found.proof is not None:
        click.echo(f"checked  {found.proof}")
    for names, proof in found.proofs.items():
        for warning in proof.warnings:
            click.echo(printable(f"{', '.join(names)}: {warning}"), err=True)
    for reason in dict.fromkeys(found.unchecked.values()):
        nets = [name for name, why in found.unchecked.items() if why == reason]
        click.echo(f"not checked: {some_names(nets)}: {reason}")


def _by_samples(model: LanguageModel, precision: Precision, file: Path) -> LanguageModel:
    """The model with codes that lose least for a text."""
    from bmcompiler.llm.gptq import gptq_model
    from bmcompiler.llm.perplexity import pieces
    from bmcompiler.llm.text import Text, whole_text

    reader = Text(model.folder, "put the model's tokenizer.json there, or leave out --text")
    tokens, begin = reader.tokens(whole_text(file), special=False), reader.tokens("")
    length = min(_SAMPLE, model.architecture.positions, len(begin) + len(tokens))
    return gptq_model(model, precision, pieces(tokens, length, _SAMPLES, begin))


@cli.command(epilog=_RUN)
@click.argument("bundle", metavar="BUNDLE.bmodel", type=click.Path(path_type=Path))
@click.option("--prompt", "prompts", multiple=True, help="Text to go on from; with --chat once for each turn.")
@click.option("--tokens", metavar="N,N,...", help="The prompt as numbers, in place of text.")
@click.option("--chat", is_flag=True, help="Put the prompt into the model's template for chats.")
@click.option("--tokenizer", metavar="FOLDER", type=click.Path(path_type=Path), help="Folder with tokenizer.json.  "
              "[default: config beside the bundle]")  # fmt: skip
@click.option("--count", default=64, show_default=True, type=click.IntRange(1), help="Tokens to make at most.")
@click.option("--temperature", default=0.0, show_default=True, type=Number(0), help="0 takes the best token.")
@click.option("--top-k", default=0, show_default=True, type=click.IntRange(0), help="Draw among so many; 0 = all.")
@click.option("--top-p", default=1.0, show_default=True, type=Number(0, 1, min_open=True), help="Draw among the best "
              "that make up so much.")  # fmt: skip
@click.option("--penalty", default=1.0, show_default=True, type=Number(0, min_open=True), help="Divides the scores "
              "of tokens that came before.")  # fmt: skip
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of the draws.")
@click.option("--one-by-one", is_flag=True, help="Read the prompt with the nets for one token.")
def run(
    bundle: Path, prompts: tuple[str, ...], tokens: str | None, chat: bool, tokenizer: Path | None, count: int,
    temperature: float, top_k: int, top_p: float, penalty: float, seed: int, one_by_one: bool,
) -> None:  # fmt: skip
    """Make tokens with BUNDLE on the simulator; they are printed as they come."""
    from bmcompiler.llm.bundle import Bundle
    from bmcompiler.llm.generate import Generator
    from bmcompiler.llm.sampling import Sampler
    from bmcompiler.llm.text import BESIDE, Text, end_tokens

    if bool(prompts) == (tokens is not None):
        reason = "both --prompt and --tokens are given" if prompts else "there is no prompt"
        raise UsageError(reason, remedy="give --prompt TEXT, or --tokens with numbers: one of them")
    if len(prompts) > 1 and not chat:
        raise UsageError("several prompts are turns of a chat", remedy="add --chat, or give one")
    sampler = Sampler(temperature, top_k, top_p, penalty, seed)
    loaded = Bundle.load(bundle)
    text = Text(tokenizer or bundle.parent / BESIDE, _OTHER_FOLDER + ", or give --tokens") if tokens is None else None
    if len(prompts) > 1 and not (loaded.goes_on or one_by_one):
        raise UsageError(
            "the bundle has no nets for further turns of a chat", remedy="compile with --history, or add --one-by-one"
        )
    generator, start = Generator(loaded), time.perf_counter()
    said: list[str] = []
    read = made = 0
    for prompt in prompts or ("",):
        if said:
            click.echo()
        if text is None:
            given = _numbers(tokens or "")
        elif chat:
            given = text.tokens(text.as_chat([*said, prompt]), special=False)
        else:
            given = text.tokens(prompt)
        read += len(given) - generator.cached(given)
        new: list[int] = []
        ends = end_tokens(text.folder) if text else ()
        stream = _kept(generator.drawn(given, count, ends, sampler, one_by_one=one_by_one, go_on=True), new)
        answer = ""
        for piece in (f"{token} " for token in stream) if text is None else text.pieces(stream):
            click.echo(piece, nl=False)
            answer += piece
        said += [prompt, answer]
        made += len(new)
    seconds = time.perf_counter() - start
    click.echo(f"\n{read} tokens read, {made} made in {seconds:.1f} s on this host", err=True)


def _kept(tokens: Iterator[int], made: list[int]) -> Iterator[int]:
    for token in tokens:
        made.append(token)
        yield token


def _numbers(text: str) -> list[int]:
    try:
        return [int(each) for each in text.split(",")]
    except ValueError:
        raise UsageError(f"--tokens are numbers with commas between them, got {text!r}") from None


@cli.command()
@_MODEL
@_options
@click.option("--plan", is_flag=True, help="Compile a layer, embeddings and scores, of noise, and say what they take.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def estimate(source: Path, length: int, cache: int | None, plan: bool, as_json: bool, **given: Any) -> None:
    """Say what MODEL needs of a board at least, before anything is compiled."""
    from bmcompiler.llm.estimate import estimate
    from bmcompiler.llm.groups import BundleOptions, check_positions
    from bmcompiler.llm.model import architecture_of
    from bmcompiler.llm.planned import planned

    facts = architecture_of(source)
    kinds = [given.pop("quantize")] if given.get("quantize") else _KINDS[::2] if facts.dtype != "bf16" else _KINDS[1::2]
    given.pop("quantize", None)
    rows = []
    for kind in kinds:
        precision = _precision(facts.dtype, kind, **given)
        options = BundleOptions(precision, length, cache=cache)
        check_positions(facts, options, source)
        found = planned(facts, options) if plan else estimate(facts, precision, length, cache)
        rows.append({
            "types": kind, "first token s": round(found.first, 4), "tokens/s": round(1 / found.token, 1),
            "memory MB": round(found.memory / 1e6, 1), "weights MB": round((found.weights + found.head) / 1e6, 1),
            "cache MB": round(found.cache / 1e6, 2), "launches": found.launches,
        })  # fmt: skip
    if as_json:
        click.echo(json.dumps({"length": length, "cache": cache or length, "planned": plan, "rows": rows}, indent=2))
        return
    click.echo(format_table(list(rows[0]), [list(row.values()) for row in rows]), nl=False)
    said, rest = ("programs", "") if plan else ("bounds", "; programs take longer, as --plan says")
    click.echo(
        f"{said} for prompts of {length} tokens and {cache or length} in the cache, by the vendor's cycle model and "
        f"0.044 ms for a launch{rest}"
    )


@cli.command()
@click.argument("bundle", metavar="BUNDLE.bmodel", type=click.Path(path_type=Path))
@click.option(
    "--text",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A text whose tokens are to be foreseen.",
)
@click.option(
    "--float", "folder", metavar="FOLDER", type=click.Path(path_type=Path), help="The model in float, beside it."
)
@click.option("--tokenizer", metavar="FOLDER", type=click.Path(path_type=Path), help="Folder with tokenizer.json.  "
              "[default: config beside the bundle]")  # fmt: skip
@click.option("--windows", default=4, show_default=True, type=click.IntRange(1), help="Pieces of text to look at.")
@worker_options
def eval(
    bundle: Path, text: Path, folder: Path | None, tokenizer: Path | None, windows: int, workers: int,
    scheduler: str | None,
) -> None:  # fmt: skip
    """Print the perplexity of BUNDLE on a text, and that of the model in float beside it."""
    from bmcompiler.llm.bundle import Bundle
    from bmcompiler.llm.perplexity import of_bundle, of_model, pieces
    from bmcompiler.llm.text import BESIDE, Text, whole_text
    from bmcompiler.parallel import open_pool

    loaded = Bundle.load(bundle)
    reader = Text(tokenizer or bundle.parent / BESIDE, _OTHER_FOLDER)
    tokens = reader.tokens(whole_text(text), special=False)
    parts = pieces(tokens, min(loaded.prompt, loaded.rows[-1]), windows, reader.tokens(""))
    with open_pool(workers, scheduler) as pool:
        rows = [("bundle", f"{of_bundle(bundle.absolute(), parts, progress, pool):.4f}")]
        if folder is not None:
            rows.append(("float", f"{of_model(folder.absolute(), parts, progress, pool):.4f}"))
    click.echo(format_table(("model", "perplexity"), rows), nl=False)
    click.echo(f"{len(parts)} pieces of {len(parts[0])} tokens")


main = command_line(cli, "bmnet-llm")
