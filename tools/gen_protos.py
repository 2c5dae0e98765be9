"""Generate `*_pb2.py` and `*_pb2.pyi` beside every .proto of the project; `make protos` calls it.

Generated code refuses protobuf runtimes older than itself, so it is made by the oldest supported generation (its
output runs on 4.25, 5.29, 6.33 and 7.36): `pip install "grpcio-tools==1.60.*" "setuptools<81"` anywhere, then

    python tools/gen_protos.py [--check]

`--check` writes nothing and exits 1 when a committed file differs from a fresh one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# (virtual path, folder, proto). The virtual path is the name under which the descriptor registers;
# it must be unique in a process that also loads the vendors' or Caffe's own generated code.
PROTOS = (
    ("bmcompiler/frontends/caffe", "frontends/caffe", "caffe"),
    ("bmcompiler/bmodel", "bmcompiler/bmodel", "bm1880"),
    ("bmcompiler/quant", "bmcompiler/quant", "calibration_table"),
)
PROTOC_GENERATION = "1.60."
LENIENT = b'# mypy: disable-error-code="type-arg"\n'  # protoc writes a bare Mapping


def generate(out: Path) -> Iterator[tuple[Path, bytes]]:
    """Run protoc into `out`; yield (committed path, fresh bytes) per generated file."""
    from grpc_tools import protoc

    for package, folder, name in PROTOS:
        command = [
            "protoc",
            f"-I{package}={ROOT / folder}",
            f"--python_out={out}",
            f"--pyi_out={out}",
            f"{package}/{name}.proto",
        ]
        if protoc.main(command) != 0:
            raise SystemExit(f"gen_protos: protoc failed on {folder}/{name}.proto")
        for suffix in ("_pb2.py", "_pb2.pyi"):
            head = LENIENT if suffix.endswith(".pyi") else b""
            yield ROOT / folder / f"{name}{suffix}", head + (out / package / f"{name}{suffix}").read_bytes()


def main() -> int:
    parser = argparse.ArgumentParser(description="generate protobuf code")
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on a difference")
    check: bool = parser.parse_args().check
    installed = version("grpcio-tools")
    if not installed.startswith(PROTOC_GENERATION):
        raise SystemExit(
            f"gen_protos: needs grpcio-tools {PROTOC_GENERATION}x, found {installed}; see this file's head"
        )
    stale = []
    with tempfile.TemporaryDirectory() as folder:
        for path, fresh in generate(Path(folder)):
            if path.exists() and path.read_bytes() == fresh:
                continue
            stale.append(str(path.relative_to(ROOT)))
            if not check:
                path.write_bytes(fresh)
    print(("stale: " if check else "written: ") + (", ".join(stale) or "nothing"))
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
