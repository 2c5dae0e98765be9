"""Files read without copying and written all at once or not at all."""

from __future__ import annotations

import errno
import mmap
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from bmcompiler.errors import FileFormatError, UsageError
from bmcompiler.files.kinds import Kind, refuse_another_kind

StrPath = str | os.PathLike[str]
Buffer = bytes | bytearray | memoryview | mmap.mmap


def file_name(text: str) -> str:
    """`text` from a model file as part of a file name: no separators or control characters, at most 100 characters."""
    return re.sub(r"[^\w.+-]", "_", text)[:100] or "net"


def map_file(path: StrPath) -> memoryview:
    """Read-only view of a whole file, mapped, not copied; the view keeps the mapping alive.

    Raises:
        FileFormatError: the file is empty or is no regular file (a folder, a pipe, a device).
        OSError: it cannot be opened.
    """
    check_regular(path)
    with open(path, "rb") as stream:
        if os.fstat(stream.fileno()).st_size == 0:
            raise FileFormatError("the file is empty", file=path, remedy="write or copy it again")
        return memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))


def forget_pages(data: Buffer) -> None:
    """Let a mapped file leave memory until it is read again. All else stays, as does everything on some systems."""
    owner = data.obj if isinstance(data, memoryview) else data
    if isinstance(owner, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        owner.madvise(mmap.MADV_DONTNEED)


def check_regular(path: StrPath) -> None:
    """To be asked before reading: opening a pipe without a writer would wait for ever, a device need not end.

    Raises:
        FileFormatError: the path is a folder, a pipe or a device.
        OSError: there is nothing.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise FileFormatError("not a regular file", file=path, remedy="pass the path of a file on disk")


def read_text(path: StrPath) -> str:
    """The text of a regular file.

    Raises:
        FileFormatError: the path is a folder, a pipe or a device.
        UnicodeDecodeError: the bytes are not UTF-8.
        OSError: it cannot be read.
    """
    check_regular(path)
    return Path(path).read_text(encoding="utf-8")


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, where there is none. Raises UsageError when there is something else."""
    if path.exists() and not path.is_dir():
        raise UsageError("is a file, a folder is needed", file=path)
    path.mkdir(parents=True, exist_ok=True)


_NO_SPACE = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
"""What writing to an open file fails with; the error itself does not know the file."""


@contextmanager
def atomic_output(path: StrPath, kind: Kind) -> Iterator[IO[Any]]:
    """Stream to a temporary file beside `path` that takes its place when the block ends, and vanishes when it raises.

    A reader therefore never sees half a file, and an existing file survives a failed run.

    Raises:
        UsageError: `path` holds something of another kind.
        OSError: the folder does not exist or cannot be written; `filename` is `path`.
    """
    target, text = Path(path), kind.text
    if target.is_symlink() and not (target.exists() and not target.is_file()):
        target = Path(os.path.realpath(target))  # the file behind a link is replaced, not the link
    if target.exists() and not target.is_file() and not target.is_dir():  # a device such as /dev/null must stay one
        try:
            with open(target, **_modes(text)) as stream:
                yield stream
        except OSError as error:
            raise _with_name(error, target) from None
        return
    refuse_another_kind(target, kind)
    handle, temporary = _temporary(target)
    try:
        with open(handle, **_modes(text)) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())  # a machine that stops now has the old file or the new one
        os.chmod(temporary, _mode(target))
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise _with_name(error, target) from None
        raise


def _modes(text: bool) -> dict[str, Any]:
    """Texts are UTF-8; names of files that are none are escaped."""
    return {"mode": "w", "encoding": "utf-8", "errors": "backslashreplace"} if text else {"mode": "wb"}


def _with_name(error: OSError, target: Path) -> OSError:
    """A full device does not say its name."""
    if error.filename is None and error.errno in _NO_SPACE:
        return OSError(error.errno, error.strerror, str(target))
    return error


def check_output(path: StrPath, kind: Kind) -> None:
    """Raise the error that `atomic_output` would raise; for asking before long work. Leaves nothing behind."""
    target = Path(path)
    refuse_another_kind(target, kind)
    if target.is_dir() or target.is_file() or not target.exists():
        handle, temporary = _temporary(target)
        os.close(handle)
        os.unlink(temporary)


def _temporary(target: Path) -> tuple[int, str]:
    """A new file beside `target`: open handle and path."""
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder, a file name is needed", str(target))
    try:
        return tempfile.mkstemp(prefix=f".{target.name[:40]}.", suffix=".tmp", dir=target.parent)
    except OSError as error:
        if target.parent.is_dir():
            reason = f"{error.strerror}. Remedy: give a path that you may write to"
        else:
            reason = "the folder does not exist. Remedy: make it, or give another path"
        raise type(error)(error.errno, f"cannot be written: {reason}", str(target)) from None


def _mode(target: Path) -> int:
    """Permission bits for the new file: those of the one it replaces, else what open() would give."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
