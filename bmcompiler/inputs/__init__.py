"""Input data as people have it: .npz and .npy files, folders of them, and images.

    from bmcompiler.inputs import ImageOptions, open_inputs
    photos = open_inputs(ImageOptions("photos", mean=(123.7, 116.3, 103.5), scale=0.0171))
    session.run(photos.bind(session.inputs))

A source does not know the network yet; `bind` gives it the inputs and makes a mapping of arrays and `Samples`, which
calibration and `Session.run` read step by step.
"""

from __future__ import annotations

import os

import numpy as np

from bmcompiler.errors import UsageError
from bmcompiler.inputs.files import ArraySource, FileSource, FolderSource
from bmcompiler.inputs.images import ImageSource
from bmcompiler.inputs.limit import LimitedSource, checked_limit
from bmcompiler.inputs.placing import Placement, placed
from bmcompiler.inputs.source import Data, InputData, Named, Samples, Source
from bmcompiler.numeric.arrays import Array
from bmcompiler.options import ImageOptions

__all__ = [
    "Array",
    "Data",
    "ImageOptions",
    "InputData",
    "Named",
    "Placement",
    "Samples",
    "Source",
    "open_inputs",
    "placed",
]


def open_inputs(what: str | os.PathLike[str] | Array | ImageOptions, limit: int | None = None) -> Source:
    """A source of samples: an .npz or .npy file, a folder of such files, the array of a net's only input, or images.

    With a `limit` only the first that many samples, in the order of the file or of the names in the folder.

    Raises:
        UsageError: a limit below 1, or something that names no source.
        CalibrationError: a folder without samples, or a file that holds no numeric arrays.
        UnsupportedError: images without Pillow.
        OSError: the file or folder cannot be opened.
    """
    if limit is not None:
        checked_limit(limit)
        return LimitedSource(open_inputs(what), limit)
    if isinstance(what, ImageOptions):
        return ImageSource(what)
    if hasattr(what, "__array__"):  # of numpy, or a tensor of another library
        return ArraySource(np.asarray(what))
    if not isinstance(what, str | os.PathLike):
        raise UsageError(
            f"samples are an array, arrays by input name, or the path of a file or folder, got {type(what).__name__}",
            remedy='give a numpy array, or arrays by name, as in {"INPUT": array}',
        )
    return FolderSource(what) if os.path.isdir(what) else FileSource(what)
