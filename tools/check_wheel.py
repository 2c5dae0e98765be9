"""Build the wheel, install it alone into a new environment, and use it there: help, demo, images, all pages.

    python tools/check_wheel.py

Blocks of pages and the notebook run in empty folders; which and with what files: tests/pages.py. The Python that runs
this program has the tests' packages (`make wheel-check`); the environment has what a user has.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


IMAGES = ("install", ".[images]")
"""What the README tells people to say in the checkout."""
PAGES = ("tests/test_pages_run.py", "tests/test_notebook.py")
LEFT_OUT = shutil.ignore_patterns(".*", "build", "dist", "site", "*.egg-info", "third_party", "__pycache__")


def run(*command: object, folder: Path | None = None) -> None:
    """Print and run; ends the program when the command fails. Runs outside the checkout, so only the wheel is seen."""
    words = [str(word) for word in command]
    print("+", " ".join(words), flush=True)
    if subprocess.run(words, cwd=folder or tempfile.gettempdir()).returncode:
        sys.exit(f"failed: {' '.join(words)}")


def use(package: Path, interpreter: str, environment: Path) -> Path:
    """Install a wheel or source archive alone, and use it: the installation, help, the demo. Gives its Python."""
    run(interpreter, "-m", "venv", environment)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", package)
    run(environment / "bin" / "bmnet-doctor")
    run(environment / "bin" / "bmnet-compile", "--help")
    run(python, ROOT / "examples" / "lenet_bm1880.py")
    return python


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        wheels, environment, checkout = (Path(folder) / name for name in ("wheels", "venv", "checkout"))
        shutil.copytree(ROOT, checkout, ignore=LEFT_OUT)  # pip leaves an egg-info, whose entry points would go stale
        run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", wheels, checkout)
        (wheel,) = wheels.glob("*.whl")
        python = use(wheel, sys.executable, environment)
        # the folder bmcompiler of the checkout comes before the installed package there
        run(python, "-c", "from bmcompiler.backends.bm1684.target import TARGET", folder=checkout)
        assert f'pip {IMAGES[0]} "{IMAGES[1]}"' in (ROOT / "README.md").read_text(encoding="utf-8")
        run(python, "-m", "pip", "-q", *IMAGES, folder=checkout)
        run(python, "-c", "import bmcompiler.inputs.decode, PIL.Image")
        run(python, "-m", "pip", "install", "-q", "ipykernel")  # what Jupyter runs the notebook with
        run(sys.executable, "-m", "pytest", "-q", "-rs", "--python", python, *PAGES, folder=ROOT)
        print(f"{wheel.name}: works in a clean environment")


if __name__ == "__main__":
    main()
