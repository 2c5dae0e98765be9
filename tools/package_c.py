"""The C libraries as a Debian package and a Docker image's folder: python tools/package_c.py [OUTPUT]

OUTPUT (default dist/package) gets bmcompiler-c_VERSION_ARCH.deb, which installs a folder of `bmnet-capi build
--own-python` as /opt/bmcompiler with files for pkg-config and CMake, and a Dockerfile that installs the package.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from bmcompiler.capi.build import build

PREFIX = Path("opt/bmcompiler")
CONTROL = """Package: bmcompiler-c
Version: {version}
Architecture: {architecture}
Maintainer: the bmcompiler project
Installed-Size: {size}
Depends: libc6, libstdc++6, zlib1g, libffi8 | libffi7
Section: devel
Priority: optional
Description: C libraries of Sophon's and DMP's interfaces on simulators
 libbmruntime, libbmkernel, libbmnet, libbmlib, libbmrt, libtpukernel and libdmpdv with their headers, for programs
 that were written for the vendors' libraries. They bring a Python of their own.
"""
DOCKERFILE = """FROM debian:bookworm-slim
COPY {package} /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends gcc g++ libc6-dev pkg-config /tmp/{package} \\
    && rm -rf /tmp/{package} /var/lib/apt/lists/*
WORKDIR /work
"""


def lay_out(root: Path) -> None:
    """The files of the package."""
    home = root / PREFIX
    build(home, own_python=True)
    descriptions, configs = root / "usr/share/pkgconfig", root / "usr/share/cmake"
    descriptions.mkdir(parents=True)
    for found in (home / "lib" / "pkgconfig").iterdir():  # with the place, which they tell by their own elsewhere
        text = found.read_text().replace("prefix=${pcfiledir}/../..", f"prefix=/{PREFIX}")
        (descriptions / found.name).write_text(text)
    for found in (home / "lib" / "cmake").glob("*/*.cmake"):
        (configs / found.parent.name).mkdir(parents=True)
        (configs / found.parent.name / found.name).write_text(f'include("/{found.relative_to(root)}")\n')


def main() -> None:
    """Make both files."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n\n")[2], usage="package_c.py [-h] [OUTPUT]"
    )
    parser.add_argument("output", nargs="?", type=Path, default=Path("dist/package"), metavar="OUTPUT")
    output: Path = parser.parse_args().output
    if shutil.which("dpkg-deb") is None:
        raise SystemExit("there is no dpkg-deb: install dpkg")
    output.mkdir(parents=True, exist_ok=True)
    architecture = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True)
    facts = {"version": version("bmcompiler"), "architecture": architecture.stdout.strip()}
    package = "bmcompiler-c_{version}_{architecture}.deb".format_map(facts)
    with TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        lay_out(root)
        size = sum(file.lstat().st_size for file in root.rglob("*")) // 1024
        (root / "DEBIAN").mkdir()
        (root / "DEBIAN" / "control").write_text(CONTROL.format(size=size, **facts))
        root.chmod(0o755)
        command = ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", root, output / package]
        subprocess.run(command, check=True)
    (output / "Dockerfile").write_text(DOCKERFILE.format(package=package))


if __name__ == "__main__":
    main()
