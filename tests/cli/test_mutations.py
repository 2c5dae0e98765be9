"""Files with random damage: every command ends in success or in a short message, within limits of time and memory.

Each kind of file is mutated many times with fixed seeds, and the commands that read it run in a forked process under an
address-space limit, each under an alarm. Anything but exit status 0, or 1 or 2 with a message, fails the test.
"""

from __future__ import annotations

import contextlib
import gc
import io
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_files import command, write_all
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import ModelProto

from bmcompiler.bmodel import bm1880_pb2
from bmcompiler.frontends.caffe.caffe_pb2 import NetParameter
from bmcompiler.quant.calibration_table_pb2 import NetCalibrationParameter

SECONDS, MEMORY = 10, 4 << 30
TABLE = "--calibration-table net.table"
TO_MODEL = "--target bm1880 --quiet -o out"

KINDS: dict[str, tuple[int, str, tuple[str, ...]]] = {
    # kind: (mutants in the short run, file, commands; {} is the mutated file)
    "prototxt": (70, "net.prototxt", (f"compile {{}} net.caffemodel {TABLE} {TO_MODEL}",)),
    "caffemodel": (50, "net.caffemodel", (f"compile net.prototxt {{}} {TABLE} {TO_MODEL}",)),
    "onnx": (70, "net.onnx", (f"compile {{}} --data calib.npz --calibration-method max {TO_MODEL}",)),
    "text table": (25, "net.table", (f"compile net.prototxt net.caffemodel --calibration-table {{}} {TO_MODEL}",)),
    "binary table": (25, "net.pb2", (f"compile net.prototxt net.caffemodel --calibration-table {{}} {TO_MODEL}",)),
    "table message": (
        25,
        "table.prototxt",
        (f"compile net.prototxt net.caffemodel --calibration-table {{}} {TO_MODEL}",),
    ),
    "float text": (50, "net.mlir", (f"compile {{}} {TABLE} {TO_MODEL}", "opt {} --pipeline canonicalize -o out")),
    "int8 text": (50, "int8.mlir", (f"compile {{}} --pipeline dead-code {TO_MODEL}",)),
    "text weights": (30, "net.weights.npz", (f"compile net.mlir {{}} {TABLE} {TO_MODEL}",)),
    "model": (90, "net.bmodel", ("run {} --data calib.npz -o out", "tool info {}", "tool dis {} -o out")),
    "calibration data": (
        30,
        "calib.npz",
        ("calibrate net.prototxt net.caffemodel --method max --data {} -o out",),
    ),
    "run data": (30, "calib.npz", ("run net.bmodel --data {} -o out",)),
}
TEXT = ("prototxt", "text table", "table message", "float text", "int8 text")


def damaged(data: bytes, rng: random.Random) -> bytes:
    """One to four of: bit flip, cut, deletion, insertion, repetition, extreme bytes."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 3))):
        at, size = rng.randrange(len(out) or 1), rng.randint(1, 16)
        match rng.randrange(7):
            case 0 | 1 if out:
                out[at] ^= 1 << rng.randrange(8)
            case 2:
                del out[at : at + size]
            case 3:
                out[at:at] = rng.randbytes(size)
            case 4:
                out[at:at] = out[at : at + 4 * size]
            case 5:
                out[at : at + 4] = rng.choice((b"\xff" * 4, bytes(4), b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80"))
            case _ if rng.random() < 0.3:
                del out[at:]
    return bytes(out)


def rezipped(data: bytes, rng: random.Random) -> bytes:
    """An npz with damage inside a member, under a checksum that fits."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w") as target:
        chosen = rng.choice(source.namelist())
        for name in source.namelist():
            member = source.read(name)
            target.writestr(name, damaged(member, rng) if name == chosen else member)
    return out.getvalue()


def reworded(data: bytes, rng: random.Random) -> bytes:
    """Words of a text swapped, repeated, left out, or replaced by numbers and words that do harm elsewhere."""
    words = re.split(r"(\W)", data.decode("utf-8", "replace"))
    harmful = ["0", "-1", "1", "2147483647", "99999999999999999999", "1e39", "nan", "inf", "", '"', "{", "}", "1x", "î"]
    for _ in range(rng.choice((1, 1, 2, 3))):
        a, b = rng.randrange(len(words)), rng.randrange(len(words))
        match rng.randrange(4):
            case 0:
                words[a], words[b] = words[b], words[a]
            case 1:
                words[a] = words[b]
            case 2:
                numbers = [i for i, word in enumerate(words) if word.isdigit()] or [a]
                words[rng.choice(numbers)] = rng.choice(harmful)
            case _:
                words[a] = rng.choice(harmful)
    return "".join(words).encode()


def leaves(message: Message) -> Iterator[tuple[Message, FieldDescriptor, int]]:
    """Every value in a message and the messages inside it, as (message, field, index); index -1: not repeated."""
    for field, value in message.ListFields():
        repeated = not hasattr(value, "ListFields") and hasattr(value, "add" if field.message_type else "append")
        for index, item in enumerate(value) if repeated else ((-1, value),):
            yield message, field, index
            if field.message_type:
                yield from leaves(item)


def refilled(message: Message, rng: random.Random) -> bytes:
    """One to three values of a message replaced by others of their kind, left out or repeated."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        inside, field, index = rng.choice(list(leaves(message)))
        value = getattr(inside, field.name) if index < 0 else getattr(inside, field.name)[index]
        if field.message_type or (index >= 0 and rng.random() < 0.3):
            if index >= 0 and rng.random() < 0.5:
                del getattr(inside, field.name)[index]
            elif index >= 0:
                getattr(inside, field.name).extend([value])
            else:
                inside.ClearField(field.name)
            continue
        number = rng.choice((0, 1, 2, 3, -1, 7, 255, 65536, 2**31 - 1, -(2**31), 2**63 - 1))
        choices = {
            bool: lambda: True,
            int: lambda number=number: number,
            float: lambda: rng.choice((0.0, -1.0, 1e38, 1e-38, float("nan"), float("inf"))),
            str: lambda value=value: rng.choice(("", "x", "data", value + "x", value[:-1])),
            bytes: lambda value=value: damaged(value, rng),
        }
        # a field of another width or kind refuses the number: the value then stays
        with contextlib.suppress(ValueError, TypeError):
            new = choices[type(value)]()
            if index < 0:
                setattr(inside, field.name, new)
            else:
                getattr(inside, field.name)[index] = new
    return message.SerializeToString()


def refilled_model(data: bytes, rng: random.Random) -> bytes:
    """A bmodel whose message has other values."""
    end = 8 + int.from_bytes(data[4:8], "little")
    message = refilled(bm1880_pb2.Model.FromString(data[8:end]), rng)
    return data[:4] + len(message).to_bytes(4, "little") + message + data[end:]


INSIDE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "onnx": lambda data, rng: refilled(ModelProto.FromString(data), rng),
    "caffemodel": lambda data, rng: refilled(NetParameter.FromString(data), rng),
    "binary table": lambda data, rng: refilled(NetCalibrationParameter.FromString(data), rng),
    "model": refilled_model,
    "text weights": rezipped,
    "calibration data": rezipped,
    "run data": rezipped,
}


class TooSlow(BaseException):
    """Raised by the alarm; no handler for ordinary errors catches it."""


def _alarm(*_: object) -> None:
    raise TooSlow


@contextlib.contextmanager
def time_limit() -> Iterator[None]:
    """Of processor time; what waits for ever is seen by who waits for the process."""
    signal.signal(signal.SIGPROF, _alarm)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def outcome(line: str) -> str:
    """How a command ended: "ok", "refused", or "WRONG" with what is wrong."""
    name, *arguments = line.split()
    before = set(os.listdir())
    errors = io.StringIO()
    try:
        with time_limit(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
            status = command(name, *arguments)
    except TooSlow:
        return f"WRONG: took more than {SECONDS} s"
    except BaseException as error:
        return f"WRONG: raised {type(error).__name__}: {error}"
    message, left = errors.getvalue(), sorted(set(os.listdir()) - before)
    for file in left:
        Path(file).unlink()
    if status == 0:
        return "ok"
    if status not in (1, 2) or f"bmnet-{name}: " not in message or "Traceback" in message:
        return f"WRONG: status {status} and the message {message!r}"
    last = message[message.index(f"bmnet-{name}: ") :]
    # all layers that are refused are listed, a line each
    told = [line for line in last.splitlines() if not line.startswith("  ")]
    if len(told) > 3:
        return f"WRONG: a message of {len(told)} lines: {message!r}"
    return f"WRONG: left {left} behind" if left else "refused"


def _mutants(kind: str, seeds: range, progress: str) -> None:
    """In a process of its own: run all mutants; the result goes to the file `progress`, line by line."""
    gc.freeze()  # garbage of earlier tests may wait for threads that only the parent has
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    _, source, lines = KINDS[kind]
    whole = Path(source).read_bytes()
    with open(progress, "w", encoding="utf-8") as log:
        for seed in seeds:
            rng = random.Random(f"{kind} {seed}")
            mutate = damaged if rng.random() < 0.4 else reworded if kind in TEXT else INSIDE.get(kind, damaged)
            path = Path(f"bad{seed % 2}").with_suffix(Path(source).suffix)
            path.write_bytes(mutate(whole, rng))
            if path.suffix == ".mlir":
                shutil.copy(Path(source).with_suffix(".weights.npz"), path.with_suffix(".weights.npz"))
            for line in lines:
                print(f"{seed}: {line}: ", end="", file=log, flush=True)
                print(outcome(line.format(path)), file=log, flush=True)
    os._exit(0)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("originals")
    write_all(folder)
    return folder


Check = Callable[[str, range], None]


@pytest.fixture
def check(originals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    def run(kind: str, seeds: range) -> None:
        shutil.copytree(originals, tmp_path / "work")
        monkeypatch.chdir(tmp_path / "work")
        progress = tmp_path / "progress"
        process = multiprocessing.get_context("fork").Process(target=_mutants, args=(kind, seeds, str(progress)))
        process.start()
        process.join(600)
        alive = process.is_alive()
        if alive:
            process.kill()
            process.join()
        lines = progress.read_text(encoding="utf-8").splitlines()
        wrong = [line for line in lines if ": WRONG: " in line]
        assert not wrong, "\n".join(wrong[:5])
        assert not alive, f"hangs at {lines[-1]}"
        assert process.exitcode == 0, f"the process died ({process.exitcode}) at {lines[-1]}"
        endings = {line.rsplit(": ", 1)[-1] for line in lines}
        assert endings == {"ok", "refused"}, "the damage is too weak or too strong to tell anything"

    return run


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_end_in_success_or_a_message(kind: str, check: Check) -> None:
    check(kind, range(KINDS[kind][0]))


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS)
def test_much_more_damage(kind: str, check: Check) -> None:
    check(kind, range(1000, 1000 + 8 * KINDS[kind][0]))


def test_there_are_enough_mutants() -> None:
    assert sum(count for count, _, _ in KINDS.values()) >= 400


def test_the_time_limit_works() -> None:
    signal.signal(signal.SIGPROF, _alarm)
    signal.setitimer(signal.ITIMER_PROF, 0.05)
    end = time.process_time() + SECONDS
    with pytest.raises(TooSlow):
        while time.process_time() < end:
            pass
