"""The builder of the vendor's BMNet library: a Caffe net and its calibration table to a BM1880 model.

    builder = CaffeBuilder(BM_CHIP_BM1880, "net.prototxt", "net.caffemodel", None, "in.table", "out.table")
    builder.addCustomizedLayer(MyLayer)
    builder.addCustomizedTensorInst(MyInst)
    builder.build(1, 3, 224, 224)
    builder.store_model("net", "net.bmodel")

Names, order of parameters and meaning are the vendor's; the work is done by `bmcompiler.driver`. Optional parameters
may be None or "".
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from bmcompiler import bmodel
from bmcompiler.bmnet.inst import TensorInst
from bmcompiler.bmnet.layer import Layer
from bmcompiler.bmnet.prototypes import BMNET
from bmcompiler.bmodel.bm1880 import Bm1880Model, Library
from bmcompiler.driver import compile_network
from bmcompiler.errors import FileFormatError, UsageError
from bmcompiler.files.kinds import BYTES, NETWORK
from bmcompiler.files.prototxt import tensor_names, to_prototxt
from bmcompiler.files.store import StrPath, atomic_output
from bmcompiler.ir import Function
from bmcompiler.options import Options, as_level
from bmcompiler.plugins.custom_layers import tensor_insts
from bmcompiler.plugins.registry import lookup
from bmcompiler.quant.table import BlobParameter, CalibrationTable, LayerEntry, save_table
from bmcompiler.result import Result


class CHIP_VER(enum.Enum):  # noqa: N801 - the vendor's name
    """Chips the builder knows, by target name."""

    BM_CHIP_BM1880 = "bm1880"


BM_CHIP_BM1880 = CHIP_VER.BM_CHIP_BM1880
OPT_NONE = 0
BM_OPT_LAYER_GROUP = 1
BM_OPT_LAYER_GROUP_WITH_WEIGHT = 2
BM_OPT_LAYER_GROUP_WITH_WEIG = BM_OPT_LAYER_GROUP_WITH_WEIGHT
"""As the vendor spells it."""

_X86_64, _ARMV8 = 62, 183
"""Machine numbers of ELF headers."""


class Builder:
    """What builders of all frontends share."""

    @BMNET.checked
    def __init__(self, ver: CHIP_VER) -> None:
        if not isinstance(ver, CHIP_VER):
            raise UsageError(f"{ver!r} is no chip version", remedy="pass BM_CHIP_BM1880")
        self.ver = ver
        self._insts: list[TensorInst | type[TensorInst]] = []
        self._result: Result | None = None

    @BMNET.checked
    def addCustomizedTensorInst(self, inst: TensorInst | type[TensorInst]) -> None:
        """Use this class (or copies of this object) for ops of its `inst_name()`, in this builder only."""
        self._insts.append(inst)

    @BMNET.checked
    def build(self, n: int, c: int, h: int, w: int, opt: int = BM_OPT_LAYER_GROUP_WITH_WEIGHT) -> None:
        """Compile for an input of this shape. Raises BMError."""
        raise UsageError(f"{type(self).__name__} reads no network", remedy="use CaffeBuilder")

    @BMNET.checked
    def store_prototxt(self, dst: StrPath) -> None:
        """Write the optimised, quantized net as prototxt text, for reading (`bmcompiler.files.prototxt`)."""
        text = to_prototxt(self._built().module.main)
        with _files(), atomic_output(dst, NETWORK) as stream:
            stream.write(text)

    @BMNET.checked
    def store_model(self, net_name: str, dst: StrPath, plugin_path: StrPath | None = None) -> None:
        """Write the model.

        Args:
            plugin_path: a shared object, or a folder of them, with the vendor runtime's CPU layers; they are put into
                the model and not looked into, for x86-64 or Armv8 by their ELF header.

        Raises:
            FileFormatError: a plugin is no shared object for one of these machines.
            UsageError: a file cannot be read or written.
        """
        model = self._built().model
        if not isinstance(model, Bm1880Model):
            raise UsageError(f"a model for {model.target} takes no CPU plugins")
        with _files():
            libraries = [*model.libraries, *_libraries(Path(plugin_path))] if plugin_path else model.libraries
            bmodel.save(replace(model, net_name=net_name, libraries=libraries), dst)

    def _built(self) -> Result:
        if self._result is None:
            raise UsageError("nothing is built yet", remedy="call build() first")
        return self._result


class CaffeBuilder(Builder):
    """Compiles Caffe nets.

    Args:
        ver: BM_CHIP_BM1880.
        modified_proto: the net's structure (optional: the caffemodel holds it, too).
        caffemodel: trained weights.
        weight_bin: file that `build` writes the packed coefficients to (optional).
        in_ctable: calibration table to read, of any kind.
        out_ctable: calibration table that `build` writes: the thresholds and shifts of the optimised net (optional).
    """

    @BMNET.checked
    def __init__(
        self,
        ver: CHIP_VER,
        modified_proto: StrPath | None,
        caffemodel: StrPath,
        weight_bin: StrPath | None = None,
        in_ctable: StrPath | None = None,
        out_ctable: StrPath | None = None,
    ) -> None:
        super().__init__(ver)
        if not caffemodel:
            raise UsageError("CaffeBuilder::CaffeBuilder: caffemodel is empty", remedy="name the file of the weights")
        self.modified_proto, self.caffemodel = modified_proto or None, caffemodel
        self.weight_bin, self.in_ctable, self.out_ctable = weight_bin or None, in_ctable or None, out_ctable or None
        self._layers: list[Layer | type[Layer]] = []
        self._building = False

    @BMNET.checked
    def addCustomizedLayer(self, layer: Layer | type[Layer]) -> None:
        """Use this `CustomizedCaffeLayer` class (or copies of this object) for its type, in this builder only."""
        self._layers.append(layer)

    @BMNET.checked
    def build(self, n: int, c: int, h: int, w: int, opt: int = BM_OPT_LAYER_GROUP_WITH_WEIGHT) -> None:
        """Compile for an input of this shape, and write `weight_bin` and `out_ctable`.

        Raises BMError, also where a layer or an instruction calls it while it runs.
        """
        if opt not in (OPT_NONE, BM_OPT_LAYER_GROUP, BM_OPT_LAYER_GROUP_WITH_WEIGHT):
            raise UsageError(f"opt {opt!r} is unknown", remedy="pass OPT_NONE or one of the BM_OPT constants")
        options = Options(target=self.ver.value, shapes=[[(n, c, h, w)]], table=self.in_ctable, opt=as_level(opt))
        model, weights = self.modified_proto or self.caffemodel, self.caffemodel if self.modified_proto else None
        frontend = lookup("bmcompiler.frontends", "caffe", "frontend")
        with ExitStack() as scope:
            scope.enter_context(self._once())
            scope.enter_context(_files())
            scope.enter_context(frontend.custom_layers(self._layers))
            scope.enter_context(tensor_insts(self._insts))
            self._result = compile_network(model, weights, options)
        with _files():
            if self.weight_bin is not None:
                with atomic_output(self.weight_bin, BYTES) as stream:
                    stream.writelines(self._result.model.weight_sets)
            if self.out_ctable is not None:
                save_table(table_of(self._result.module.main), self.out_ctable)

    @contextmanager
    def _once(self) -> Iterator[None]:
        if self._building:
            raise UsageError(
                "CaffeBuilder::build: this builder is being built", remedy="call it after build has returned"
            )
        self._building = True
        try:
            yield
        finally:
            self._building = False


def table_of(function: Function) -> CalibrationTable:
    """The thresholds of a quantized net by tensor name, with the shift of the op that makes the tensor."""
    names = tensor_names(function)
    entries = []
    for value, name in names.items():
        quant = value.type.quant
        if quant is not None:
            shift = value.op.attributes.get("rshift") if value.op is not None else None
            blob = BlobParameter(name, quant.threshold, shift)
            entries.append(LayerEntry(name, (quant.threshold,), shift, blob_param=(blob,)))
    return CalibrationTable(function.name, tuple(entries))


@contextmanager
def _files() -> Iterator[None]:
    """A file that cannot be read or written is an error of this library, too."""
    try:
        yield
    except OSError as error:
        raise UsageError(error.strerror or str(error), file=error.filename, remedy="check the path") from error


def _libraries(path: Path) -> Iterator[Library]:
    files = sorted(path.glob("*.so")) if path.is_dir() else [path]
    if not files:
        raise UsageError("the folder holds no .so file", file=path)
    for file in files:
        data = file.read_bytes()
        processor = int.from_bytes(data[18:20], "little") if data[:4] == b"\x7fELF" else None
        if processor not in (_X86_64, _ARMV8):
            raise FileFormatError("no shared object for x86-64 or Armv8", file=file)
        yield Library(file.stem, x86_64=data) if processor == _X86_64 else Library(file.stem, armv8=data)
