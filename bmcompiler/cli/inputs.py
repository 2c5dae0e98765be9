"""The options for images, the same in every command that reads samples."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bmcompiler.errors import UsageError

if TYPE_CHECKING:
    from bmcompiler.inputs import ImageOptions

FORMULA = """
Images become value = (pixel - mean) * scale per channel, pixels 0..255, in --channel-order. They are stretched to the
network's input; with --keep-aspect both sides are scaled alike and the middle is cut out. PATH of samples may be an
.npz (one array per input name, samples on axis 0), an .npy, or a folder of either, one sample or several per file.
"""
"""For the ends of help texts."""


def _numbers(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    try:
        return None if value is None else tuple(map(float, value.split(",")))
    except ValueError:
        raise click.BadParameter(f"'{value}' is no number and no list of numbers like 104,117,123") from None


def _size(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    if value is None or value == "to-input":
        return None
    found = re.fullmatch(r"([0-9]{1,6})x([0-9]{1,6})", value)
    if found is None:
        raise click.BadParameter(f"'{value}' is not like 256x256 (height x width), and not to-input")
    return int(found[1]), int(found[2])


_DETAILS = (
    click.option("--mean", callback=_numbers, metavar="M|M,M,M", help="Subtracted from pixels 0..255.  [default: 0]"),
    click.option("--scale", callback=_numbers, metavar="S|S,S,S", help="Factor after that.  [default: 1]"),
    click.option("--std", callback=_numbers, metavar="S|S,S,S", help="Divisor in place of --scale, for pixels 0..255."),
    click.option("--channel-order", type=click.Choice(["rgb", "bgr"]), help="Order of colours.  [default: rgb]"),
    click.option(
        "--resize",
        callback=_size,
        metavar="HxW|to-input",
        help="Scale to this, cut out the middle.  [default: to-input]",
    ),
    click.option("--keep-aspect", is_flag=True, default=None, help="Do not stretch: cut off what sticks out."),
    click.option("--layout", type=click.Choice(["auto", "nchw", "nhwc"]), help="Of the input.  [default: auto]"),
)


metric_option = click.option(
    "--metric",
    default="auto",
    metavar="KIND",
    help="What outputs decide: classes, scores, heat, boxes, detections, embedding, norm (nothing), or "
    "module:function (outputs, float outputs) -> (kept, of) [default: told from structure and values].",
)


def image_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --images and what belongs to it; the command gets them as `images`, an `ImageOptions` or None."""
    names = ("mean", "scale", "std", "channel_order", "resize", "keep_aspect", "layout")

    @functools.wraps(function)
    def collected(*, images: Path | None, **given: Any) -> Any:
        details = {name: given.pop(name) for name in names}
        return function(images=_collect(images, {k: v for k, v in details.items() if v is not None}), **given)

    path = click.option("--images", metavar="PATH", type=click.Path(path_type=Path), help="Image file or folder.")
    for option in reversed((path, *_DETAILS)):
        collected = option(collected)
    return collected


def limit_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --limit; the command gets it as `limit`, a number from 1 on or None."""
    text = "Take only the first N samples, in the order of file names.  [default: all]"
    return click.option("--limit", metavar="N", type=click.IntRange(min=1), help=text)(function)


def _collect(path: Path | None, details: dict[str, Any]) -> ImageOptions | None:
    if path is None:
        if details:
            name = next(iter(details)).replace("_", "-")
            raise UsageError(f"--{name} is about images, but there is no --images")
        return None
    from bmcompiler.inputs import ImageOptions

    return ImageOptions(path, **details)


def one_source(option: str, path: Path | None, images: ImageOptions | None) -> Path | ImageOptions:
    """The one of two that was given. Raises UsageError otherwise."""
    if path is not None and images is not None:
        raise UsageError(f"{option} and --images exclude each other")
    if images is not None:
        return images
    if path is None:
        raise UsageError(f"there are no samples: give {option} PATH or --images PATH")
    return path
