"""The C text of a library: its header and the functions that hand their arguments over."""

from __future__ import annotations

from inspect import getdoc
from textwrap import wrap

from bmcompiler.capi.api import Prototype, Variable, declared
from bmcompiler.capi.layouts import assertions
from bmcompiler.capi.library import MOST_PAIRS, CLibrary

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
    functions = "".join(f"{_comment(library, one)}{_declaration(library, one)};\n" for one in library.prototypes)
    return f"""#ifndef {guard}
#define {guard}
{includes}{_ABOUT}#ifdef __cplusplus
extern "C" {{
#endif
{library.preamble}
{structs}
{functions}{_placed(library)}#ifdef __cplusplus
}}
#endif
#endif
"""


def _placed(library: CLibrary) -> str:
    """Macros by which calls say where they stand; a name without arguments is the function."""
    if library.unplaced is None:
        return ""
    names = [one.name for one in library.prototypes if one.name not in library.unplaced]
    macros = [f"#define {name}(...) (bmcapi_at(__FILE__, __LINE__), {name}(__VA_ARGS__))\n" for name in names]
    return f"#ifndef {_PLAIN}\n{''.join(macros)}#endif\n"


_PLAIN = "BMCAPI_NO_LINES"
"""Who defines or declares functions of a header himself defines it, as the libraries do: macros would hide them."""


_ABOUT = """/* Any thread may call. A refused call returns what its function returns on failure, changes nothing,
   and leaves a sentence in bmcapi_last_error() until the thread's next call. Sizes and offsets are in
   bytes where nothing else is said. A handle belongs to the program until the call that ends it; other pointers that a
   call returns or fills in belong to the library, and last as long as the handle they were asked of. */
"""


def source(library: CLibrary, home: str) -> str:
    """The functions: each puts its arguments into 64-bit slots.

    The text compiles only where structures are the vendor's.

    Args:
        home: where Python finds the library, "module:name".
    """
    head = f'#define {_PLAIN}\n#include <stdarg.h>\n#include <stdio.h>\n#include "{library.titles[0]}"\n'
    head += f"{assertions(library.registered)}static bmcapi_function functions[{len(library.prototypes)}];\n"
    head += f'static const bmcapi_library library = {{"{home}", functions}};\n'
    return head + "".join(_definition(library, number, one) for number, one in enumerate(library.prototypes))


def _struct(library: CLibrary, name: str) -> str:
    if name in library.written:
        return library.written[name]
    lines = []
    for one in library.fields(name):
        c_type = library.c_type(one.c_type)
        if one.alias:
            lines.append(f"    __extension__ union {{ {c_type} {one.name}; {c_type} {one.alias}; }};")
        else:
            lines.append(
                f"    {_spaced(c_type)}{one.name}{one.array};"
                + (" /* or NULL */" if one.maybe and c_type.endswith("*") else "")
            )
    tag = "" if name.endswith("_t") else f"{name} "  # C programs write `struct bm_misc_info`
    return f"typedef struct {tag}{{\n" + "\n".join(lines) + f"\n}} {name};\n" + library.after.get(name, "")


def _declaration(library: CLibrary, prototype: Prototype) -> str:
    paired = prototype.name in library.paired
    named = prototype.parameters[:-1] if paired else prototype.parameters
    parameters = ", ".join(_parameter(library, one) for one in named) or "void"
    parameters += ", ..." if paired or prototype.name in library.formatted else ""
    return f"{_spaced(library.result_type(prototype.result))}{prototype.name}({parameters})"


def _comment(library: CLibrary, prototype: Prototype) -> str:
    """What the Python function says of itself, where results go, and what is returned on failure, but for codes."""
    text = (getdoc(library.functions(prototype.name)) or "").partition("\n\nArgs:")[0].partition("\n\nRaises:")[0]
    if not text:
        return ""
    outs = [one.name for one in prototype.outs]
    if outs:
        text += f" Filled in: {', '.join('*' + name for name in outs)}."
    if prototype.result != "void" and not _codes(library, prototype.result):
        failure = _failure(library, prototype)
        text += f" On failure: {'zeros' if failure == '{0}' else failure}."
    lines = wrap(text.replace("*/", "* /"), 113)
    return "/* " + "\n   ".join(lines) + " */\n"


def _codes(library: CLibrary, result: str) -> bool:
    """Whether a type of results says whether a call succeeded."""
    return "_ERR_" in library.failures.get(result, "")


def _failure(library: CLibrary, prototype: Prototype) -> str:
    """The C expression for what a function returns when it is refused."""
    aggregate = prototype.result in library.api.structs or prototype.result in library.by_value
    handle = prototype.result in library.write
    usual = "NULL" if handle or library.result_type(prototype.result).endswith("*") else "0"
    return library.failures.get(prototype.result, "{0}" if aggregate else usual)


def _parameter(library: CLibrary, one: Variable) -> str:
    return f"{_spaced(library.c_type(one.c_type))}{one.name}{one.array}"


def _spaced(c_type: str) -> str:
    return c_type if c_type.endswith("*") else c_type + " "


def _definition(library: CLibrary, number: int, prototype: Prototype) -> str:
    slots = ", ".join(_slot(library, one) for one in prototype.parameters) or "0"
    call = f"bmcapi_call(&library, {number}, slots, {len(prototype.parameters)}, "
    body = f"    uint64_t slots[] = {{{slots}}};\n"
    if prototype.name in library.formatted:
        last = len(prototype.parameters) - 1
        body += _FORMATTING.replace("FORM", prototype.parameters[last].name).replace("LAST", str(last))
    if prototype.name in library.paired:
        count, pairs = (one.name for one in prototype.parameters[-2:])
        body = f"    uint64_t {pairs}[2 * {MOST_PAIRS}];\n{body}{_PAIRING}".replace("PAIRS", pairs)
        body = body.replace("COUNT", count).replace("MOST", str(MOST_PAIRS))
    if prototype.result == "void":
        body += f"    {call}NULL);\n"
    else:
        c_type = _spaced(library.result_type(prototype.result))
        body += f"    {c_type}failure = {_failure(library, prototype)};\n    {c_type}result = failure;\n"
        body += f"    return {call}&result) ? failure : result;\n"
    return f"{_declaration(library, prototype)}\n{{\n{body}}}\n"


_FORMATTING = """    char text[512] = "";
    va_list values;
    va_start(values, FORM);
    if (FORM) {
        vsnprintf(text, sizeof text, FORM, values);
        slots[LAST] = (uint64_t)(uintptr_t)text;
    }
    va_end(values);
"""
_PAIRING = """    va_list values;
    int place;
    va_start(values, COUNT);
    for (place = 0; COUNT <= 2 * MOST && 2 * place + 1 < COUNT; place++) {
        PAIRS[2 * place] = (uint64_t)(uintptr_t)va_arg(values, void *);
        PAIRS[2 * place + 1] = (uint64_t)va_arg(values, unsigned long long);
    }
    va_end(values);
"""


def _slot(library: CLibrary, one: Variable) -> str:
    if library.c_type(one.c_type).endswith("*") or one.array:
        return f"(uint64_t)(uintptr_t){one.name}"
    by_value = one.c_type in library.api.structs or one.c_type in library.by_value or one.c_type == "float"
    return f"(uint64_t)(uintptr_t)&{one.name}" if by_value else f"(uint64_t){one.name}"
