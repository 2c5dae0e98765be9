"""Images as network input: decoded when needed, resized, ordered and scaled.

value = (pixel - mean[c]) * scale[c], pixels 0..255, c counting channels in `channel_order`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bmcompiler.errors import CalibrationError, UnsupportedError, UsageError
from bmcompiler.inputs.decode import SUFFIXES, load_pillow, picture
from bmcompiler.inputs.files import counted
from bmcompiler.inputs.placing import drawn
from bmcompiler.inputs.source import InputData, Named, Samples, Source
from bmcompiler.numeric.arrays import Array, Doubles, Floats, Ints
from bmcompiler.options import ImageOptions, Numbers, Preprocessing, numbers_of
from bmcompiler.spelling import spelled

_CHANNELS = (1, 3)


def _factors(options: Preprocessing, channels: int) -> tuple[Floats, Floats]:
    """(mean, scale), one number per channel. Raises UsageError when there are too many or too few."""
    scale = 1.0 if options.scale is None else options.scale
    mean, factor = _per_channel("mean", options.mean, channels), _per_channel("scale", scale, channels)
    if options.std is not None:
        factor = 1.0 / _per_channel("std", options.std, channels)
    return mean.astype(np.float32), factor.astype(np.float32)


class ImageSource(Source):
    """Images for the one input of a network: 4 axes, 1 or 3 channels."""

    def __init__(self, options: ImageOptions) -> None:
        """Raises CalibrationError when there is no image, UnsupportedError without Pillow, OSError for the path."""
        load_pillow()
        self.options = options
        self.files = image_files(options.path)

    def bind(self, inputs: Sequence[Named]) -> InputData:
        if len(inputs) != 1:
            raise UsageError(
                f"images fit networks with one input, this one has {len(inputs)}: "
                f"{', '.join(each.name for each in inputs)}",
                remedy="prepare an .npz with one array per input",
            )
        samples = ImageSamples(self.files, self.options, inputs[0])
        files = counted(len(self.files), "image")
        text = f"{files} from {self.options.path}, {samples.description}"
        return InputData({inputs[0].name: samples}, self.options.path, text, [str(file) for file in self.files])


class ImageSamples(Samples):
    """Image files as float32 samples of an input's shape; `description` says what is done to them."""

    def __init__(self, files: Sequence[Path], options: Preprocessing, wanted: Named) -> None:
        self.files, self.options = files, options
        self.layout = _layout(options.layout, wanted)
        height, width, channels = (wanted.shape[a] for a in ((2, 3, 1) if self.layout == "nchw" else (1, 2, 3)))
        self.size, self.channels = (height, width), channels
        self.mean, self.scale = _factors(options, channels)
        self.resize = self.size if options.camera else options.resize or self.size
        if options.camera not in (None, self.size):
            raise UsageError(f"input '{wanted.name}' has {_size(self.size)}, not the camera's {_size(options.camera)}")
        if options.letterbox is not None:
            _per_channel("letterbox", options.letterbox, channels)
        if self.resize[0] < height or self.resize[1] < width:
            raise UsageError(
                f"resize to {_size(self.resize)} makes images smaller than input '{wanted.name}', {_size(self.size)}"
            )
        self.shape = (len(files), *wanted.shape[1:])
        self.dtype = np.dtype(np.float32)

    def take(self, indices: Sequence[int] | Ints) -> Array:
        out = np.empty((len(indices), *self.size, self.channels), np.float32)
        for row, index in enumerate(indices):
            image = picture(self.files[int(index)], self.channels)
            found = drawn(image, self.options, self.size, self.channels)
            out[row] = found[..., ::-1] if self.options.channel_order == "bgr" else found
        out -= self.mean
        out *= self.scale
        return np.ascontiguousarray(out.transpose(0, 3, 1, 2)) if self.layout == "nchw" else out

    @property
    def description(self) -> str:
        """One sentence for the user: what becomes of an image."""
        colour = "gray" if self.channels == 1 else self.options.channel_order
        how = " keeping the aspect" if self.options.keep_aspect else ""
        cut = f" and cut to {_size(self.size)}" if self.resize != self.size else ""
        fitted = f"resized to {_size(self.resize)}{how}{cut}"
        if self.options.camera is not None:
            fitted = f"pictures of {_size(self.size)}, of which the model makes {_size(self.options.cut or self.size)}"
        elif self.options.letterbox is not None:
            border = _shown(np.array(numbers_of(self.options.letterbox), np.float32))
            fitted = f"letterboxed to {_size(self.size)} on {border} ({self.options.pad or 'center'})"
        formula = f"(pixel - {_shown(self.mean)}) * {_shown(self.scale)}"
        return f"{colour}, {self.layout.upper()}, {fitted}, {formula}"


def range_of(options: Preprocessing, wanted: Named) -> float:
    """The largest magnitude of input values that pixels become."""
    found = ImageSamples([], options, wanted)
    ends = (np.array([[0.0], [255.0]]) - found.mean) * found.scale
    return float(np.abs(ends).max())


def image_files(path: str | os.PathLike[str]) -> list[Path]:
    """The image files of a folder and its subfolders (hidden ones left out), or `path` itself when it is a file."""
    top = Path(path)
    if not top.is_dir():
        with open(top, "rb"):
            return [top]

    def refuse(error: OSError) -> None:
        raise error

    found: list[Path] = []
    for folder, subfolders, names in os.walk(top, onerror=refuse):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        kept = (name for name in names if not name.startswith(".") and name.lower().endswith(SUFFIXES))
        found += [Path(folder, name) for name in kept]
    if not found:
        raise CalibrationError(
            f"the folder holds no image ({' '.join(SUFFIXES)})",
            file=path,
            remedy=f"use {spelled('data')} for .npy and .npz files",
        )
    return sorted(found)


def image_layout(shape: tuple[int, ...]) -> str | None:
    """Either "nchw" or "nhwc", where 4 axes with 1 or 3 channels on just one of the two places tell."""
    if len(shape) != 4 or (shape[1] in _CHANNELS) == (shape[3] in _CHANNELS):
        return None
    return "nchw" if shape[1] in _CHANNELS else "nhwc"


def _layout(wanted: str, given: Named) -> str:
    shape = given.shape
    layout = image_layout(shape) if wanted == "auto" else wanted
    if layout is not None and len(shape) == 4 and shape[1 if layout == "nchw" else 3] in _CHANNELS:
        return layout
    both = len(shape) == 4 and shape[1] in _CHANNELS and shape[3] in _CHANNELS
    reason = (
        "may be NCHW or NHWC"
        if both
        else "is no image of 1 or 3 channels" + ("" if wanted == "auto" else f" in {wanted}")
    )
    remedy = f"say {spelled('layout', 'nchw', 'nhwc')}" if both else "prepare the values as an .npz or .npy file"
    raise UnsupportedError(f"input '{given.name}' {list(shape)} {reason}", remedy=remedy)


def _per_channel(what: str, numbers: Numbers, channels: int) -> Doubles:
    found = numbers_of(numbers)
    if len(found) not in (1, channels):
        raise UsageError(
            f"{what} has {len(found)} numbers, the network's input {channels} channel{'' if channels == 1 else 's'}"
        )
    return np.broadcast_to(np.array(found), (channels,))


def _shown(numbers: Floats) -> str:
    texts = [f"{n:.6g}" for n in numbers.tolist()]
    return texts[0] if len(set(texts)) == 1 else f"[{', '.join(texts)}]"


def _size(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"
