"""C++ text made from tables: classes that read Caffe's parameters, methods of the kernel context."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bmcompiler.capi.library import CLibrary

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

_RESERVED = frozenset({"operator", "register", "namespace", "class", "default", "template", "union"})
"""Words of C++ that fields may be called; a method has an underscore behind it then, as protobuf writes it."""
_HEAD = """#ifndef BMCAPI_BMNET_CAFFE_HPP
#define BMCAPI_BMNET_CAFFE_HPP
#include <string>
#include "bmnet.h"
/* The parameters of a Caffe layer, read as with the classes that protobuf makes: only while `codegen` runs. */
namespace caffe {
/* Where a message lies in the parameters of a layer. */
class Fields {
public:
    explicit Fields(bmnet_layer_t layer = NULL, const std::string &path = "") : layer_(layer), path_(path) {}
protected:
    std::string at(const char *name) const { return path_ + name; }
    std::string inside(const char *name, int index) const
    {
        return path_ + name + "[" + std::to_string(index) + "].";
    }
    int count(const char *name) const { return bmnet_layer_count(layer_, at(name).c_str()); }
    double number(const char *name, int index = 0) const { return bmnet_layer_number(layer_, at(name).c_str(), index); }
    std::string text(const char *name, int index = 0) const
    {
        const char *found = bmnet_layer_text(layer_, at(name).c_str(), index);
        return found ? found : "";
    }
    bmnet_layer_t layer_;
    std::string path_;
};
"""
_NUMBERS = {1: "double", 2: "float", 3: "int64_t", 4: "uint64_t", 5: "int32_t", 13: "uint32_t"}
"""C++ types by the numbers of protobuf's types."""


def parameter_classes(schema: Descriptor) -> str:
    """A header with a class for each message that `schema` reaches, itself last."""
    messages, enums = _reached(schema)
    text = _HEAD + "".join(map(_enum, enums)) + "".join(f"class {_name(one)};\n" for one in messages)
    text += "".join(map(_class, messages)) + "".join(map(_inner, messages))
    return text + "}\n#endif\n"


def _reached(schema: Descriptor) -> tuple[list[Descriptor], list[EnumDescriptor]]:
    messages: dict[str, Descriptor] = {}
    enums: dict[str, EnumDescriptor] = {}

    def visit(message: Descriptor) -> None:
        if message.full_name in messages:
            return
        messages[message.full_name] = message
        for field in message.fields:
            if field.enum_type is not None:
                enums.setdefault(field.enum_type.full_name, field.enum_type)
            if field.message_type is not None:
                visit(field.message_type)

    visit(schema)
    return list(messages.values()), list(enums.values())


def _name(one: Descriptor | EnumDescriptor) -> str:
    """As protobuf calls it: Outer_Inner."""
    return f"{_name(one.containing_type)}_{one.name}" if one.containing_type is not None else one.name


def _enum(one: EnumDescriptor) -> str:
    prefix = f"{_name(one)}_" if one.containing_type is not None else ""
    values = ", ".join(f"{prefix}{value.name} = {value.number}" for value in one.values)
    return f"enum {_name(one)} {{ {values} }};\n"


def _class(message: Descriptor) -> str:
    methods = "".join(f"    {line}\n" for field in message.fields for line in _methods(field))
    return f"class {_name(message)} : public Fields {{\npublic:\n    using Fields::Fields;\n{methods}}};\n"


def _methods(field: FieldDescriptor) -> Iterator[str]:
    name, key = _method(field), field.name
    index, given = ("int index", "index") if field.is_repeated else ("", "0")
    if field.is_repeated:
        yield f'int {name}_size() const {{ return count("{key}"); }}'
    else:
        yield f'bool has_{name}() const {{ return count("{key}") > 0; }}'
    if field.message_type is not None:
        yield f"{_name(field.message_type)} {name}({index}) const;"
    elif field.enum_type is not None:
        kind = _name(field.enum_type)
        number = f'static_cast<int>(number("{key}", {given}))'
        yield f"{kind} {name}({index}) const {{ return static_cast<{kind}>({number}); }}"
    elif field.type in (field.TYPE_STRING, field.TYPE_BYTES):
        yield f'std::string {name}({index}) const {{ return text("{key}", {given}); }}'
    elif field.type == field.TYPE_BOOL:
        yield f'bool {name}({index}) const {{ return number("{key}", {given}) != 0; }}'
    else:
        kind = _NUMBERS[field.type]
        yield f'{kind} {name}({index}) const {{ return static_cast<{kind}>(number("{key}", {given})); }}'


def _inner(message: Descriptor) -> str:
    """The methods that give messages, whose classes are complete by now."""
    text = ""
    for field in message.fields:
        if field.message_type is not None:
            kind = _name(field.message_type)
            index, given = ("int index", "index") if field.is_repeated else ("", "0")
            text += f"inline {kind} {_name(message)}::{_method(field)}({index}) const\n"
            text += f'{{\n    return {kind}(layer_, inside("{field.name}", {given}));\n}}\n'
    return text


def _method(field: FieldDescriptor) -> str:
    lowered = field.name.lower()
    return f"{lowered}_" if lowered in _RESERVED else lowered


def context_methods(kernel: CLibrary) -> str:
    """Methods of a class with a kernel context `bmk_`: each function of the library under its name without prefix."""
    prefix, text = "bmk1880_", ""
    for one in kernel.prototypes:
        first = one.parameters[0] if one.parameters else None
        if first is None or first.c_type not in ("ctx_t", "reader_t") or not one.name.startswith(prefix):
            continue
        rest = one.parameters[1:]
        given = ", ".join(f"{kernel.c_type(each.c_type)} {each.name}{each.array}" for each in rest)
        names = ", ".join(("bmk_", *(each.name for each in rest)))
        kind, name = kernel.result_type(one.result), one.name.removeprefix(prefix)
        back = "" if one.result == "void" else "return "
        text += f"    {kind} {name}({given}) const {{ {back}checked([&] {{ return {one.name}({names}); }}); }}\n"
    return text
