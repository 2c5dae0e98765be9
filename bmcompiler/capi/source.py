"""The C text of a library: its header and the functions that hand their arguments over."""

from __future__ import annotations

from bmcompiler.capi.api import Prototype, Variable, declared
from bmcompiler.capi.library import CLibrary

STARTER = "bmcapi"
"""The library that starts Python, which all others use."""


def starter() -> tuple[str, str]:
    """Header and source of the library that starts Python."""
    return declared(__file__, "bmcapi.h"), declared(__file__, "bmcapi.c")


def header(library: CLibrary) -> str:
    """The header: constants, types, functions. For C99 and C++11."""
    guard = f"BMCAPI_{library.name.upper()}_H"
    includes = "".join(f"#include {name}\n" for name in (f'"{STARTER}.h"', *library.includes))
    structs = "".join(_struct(library, name) for name in library.api.structs if name not in library.skipped)
    functions = "".join(f"{_declaration(library, one)};\n" for one in library.prototypes)
    return f"""#ifndef {guard}
#define {guard}
{includes}#ifdef __cplusplus
extern "C" {{
#endif
{library.preamble}
{structs}
{functions}#ifdef __cplusplus
}}
#endif
#endif
"""


def source(library: CLibrary) -> str:
    """The functions: each puts its arguments into 64-bit slots."""
    head = f'#include <stdarg.h>\n#include <stdio.h>\n#include "{library.titles[0]}"\n'
    head += f'static bmcapi_library library = {{"{library.name}", -1}};\n'
    return head + "".join(_definition(library, number, one) for number, one in enumerate(library.prototypes))


def _struct(library: CLibrary, name: str) -> str:
    if name in library.written:
        return library.written[name]
    lines = []
    for one in library.api.structs[name]:
        c_type = library.c_type(one.c_type)
        if one.alias:
            lines.append(f"    __extension__ union {{ {c_type} {one.name}; {c_type} {one.alias}; }};")
        else:
            lines.append(
                f"    {_spaced(c_type)}{one.name}{one.array};"
                + (" /* or NULL */" if one.maybe and c_type.endswith("*") else "")
            )
    return "typedef struct {\n" + "\n".join(lines) + f"\n}} {name};\n" + library.after.get(name, "")


def _declaration(library: CLibrary, prototype: Prototype) -> str:
    parameters = ", ".join(_parameter(library, one) for one in prototype.parameters) or "void"
    parameters += ", ..." if prototype.name in library.formatted else ""
    return f"{_spaced(library.c_type(prototype.result))}{prototype.name}({parameters})"


def _parameter(library: CLibrary, one: Variable) -> str:
    return f"{_spaced(library.c_type(one.c_type))}{one.name}{one.array}"


def _spaced(c_type: str) -> str:
    return c_type if c_type.endswith("*") else c_type + " "


def _definition(library: CLibrary, number: int, prototype: Prototype) -> str:
    slots = ", ".join(_slot(library, one) for one in prototype.parameters) or "0"
    call = f"bmcapi_call(&library, {number}, slots, "
    body = f"    uint64_t slots[] = {{{slots}}};\n"
    if prototype.name in library.formatted:
        body += _FORMATTING.replace("FORM", prototype.parameters[0].name)
    if prototype.result == "void":
        body += f"    {call}NULL);\n"
    else:
        c_type = _spaced(library.c_type(prototype.result))
        aggregate = prototype.result in library.api.structs or prototype.result in library.by_value
        failure = library.failures.get(prototype.result, "{0}" if aggregate else "0")
        body += f"    {c_type}failure = {failure};\n    {c_type}result = failure;\n"
        body += f"    return {call}&result) ? failure : result;\n"
    return f"{_declaration(library, prototype)}\n{{\n{body}}}\n"


_FORMATTING = """    char text[512] = "";
    va_list values;
    va_start(values, FORM);
    if (FORM) {
        vsnprintf(text, sizeof text, FORM, values);
        slots[0] = (uint64_t)(uintptr_t)text;
    }
    va_end(values);
"""


def _slot(library: CLibrary, one: Variable) -> str:
    if library.c_type(one.c_type).endswith("*") or one.array:
        return f"(uint64_t)(uintptr_t){one.name}"
    by_value = one.c_type in library.api.structs or one.c_type in library.by_value or one.c_type == "float"
    return f"(uint64_t)(uintptr_t)&{one.name}" if by_value else f"(uint64_t){one.name}"
