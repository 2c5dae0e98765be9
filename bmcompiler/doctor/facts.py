"""What is publicly known of chips and of the vendor's runtimes, with its source. What is not here is not known."""

from __future__ import annotations

from dataclasses import dataclass

_GIT = "github.com/sophgo/libsophon"
_COPY = "github.com/swjtuer326/libsophon, a user's copy of it,"
_SDK = "doc.sophgo.com/sdk-docs/v23.09.01-lts, SophonSDK_doc, 4.2.2 Hardware memory"
LIBRARY = "libsophon"
GB = 1 << 30


@dataclass(frozen=True)
class Runtime:
    """A version of libsophon whose source was read.

    Attributes:
        chips: names of chips whose model files it loads.
        modes: where a net's inputs and outputs may lie, in the words of `bmnet-tool info`. None = not known, of both.
    """

    version: str
    chips: tuple[str, ...] | None
    modes: tuple[str, ...] | None
    source: str


RUNTIMES = (
    Runtime(
        "0.4.8",
        ("BM1682", "BM1684", "BM1684X", "BM1686", "BM1880"),
        ("basic",),
        f"{_GIT} 76b3614f: CMakeLists.txt, tpu-runtime/src/bmrt_arch_info.cpp; model.fbs has no addr_mode",
    ),
    Runtime(
        "0.5.2",
        ("BM1682", "BM1684", "BM1684X", "BM1684XE", "BM1688", "BM1690", "BM1880", "MARS3", "SG2380", "SGTPUV8"),
        None,
        f"{_COPY} e88453ac: CMakeLists.txt, tpu-runtime/src/bmrt_arch_info.cpp",
    ),
    Runtime(
        "0.5.3",
        None,
        None,
        f"{_GIT} 012d0b97: CMakeLists.txt",
    ),
)
OTHER_BRANCHES = {
    "0.4.10": ("is of the branch for the BM1688", f"{_GIT} 4a77b975: CMakeLists.txt (CHIP_NAME bm1686, libsophav)"),
    "0.4.11": ("is of the branch for the BM1688", f"{_COPY} f1f498be: CMakeLists.txt (CHIP_NAME bm1686, libsophav)"),
    "0.4.14": ("is of the branch for the BM1688", f"{_GIT} 1266784c: CMakeLists.txt (CHIP_NAME bm1686, libsophav)"),
}
"""Versions of branches that have numbers of their own: what they are, and its source."""
SAME_CHIP = {"BM1686": "BM1684X"}
"""Names that early model files have for a chip; libsophon 0.4.8 takes both."""
CHIP_CHECK = f"{_GIT}, tpu-runtime/src/bmruntime_bmodel.cpp, load_bmodel: names of the chips are compared"
VERSION_CHECK = f"{_GIT}, tpu-runtime/src/bmruntime_bmodel.cpp, load_bmodel: the version is printed, not compared"
DYNAMIC = f"{_GIT}, tpu-runtime/README.md: the firmware in libsophon (kernel_module) makes the commands of dynamic nets"


@dataclass(frozen=True)
class Memory:
    """Device memory that boards of a chip have for networks, at most, in bytes."""

    most: int
    text: str
    source: str


MEMORY = {
    "BM1684": Memory(4 * GB, "4 GB are the tensor processor's", _SDK),
    "BM1684X": Memory(4 * GB, "4 GB are the tensor processor's where nothing was changed", _SDK),
    "BM1880": Memory(1 * GB, "1 GB is all memory of a board", "the device trees of the vendor's BM1880 boards"),
}
