"""The C text of a library: its header and the functions that hand their arguments over."""

from __future__ import annotations

from bmcompiler.capi.api import Prototype, Variable
from bmcompiler.capi.library import CLibrary

STARTER = "bmcapi"
"""The library that starts Python, which all others use."""

_STARTER_HEADER = """/* What the libraries share. The last error of the calling thread, "" without one: */
#ifndef BMCAPI_H
#define BMCAPI_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
const char *bmcapi_last_error(void);
typedef struct { const char *name; int number; } bmcapi_library;
int bmcapi_call(bmcapi_library *library, int function, uint64_t *slots, void *result);
/* Functions of the program that Python may call by their names, such as kernels. */
typedef struct bmcapi_entry {
    const char *name;
    void (*function)(const void *);
    struct bmcapi_entry *next;
} bmcapi_entry;
void bmcapi_register(bmcapi_entry *entry);
void bmcapi_forget(bmcapi_entry *entry);
#ifdef __cplusplus
}
#endif
#endif
"""

_STARTER_SOURCE = """#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include "bmcapi.h"
static int (*open_library)(const char *);
static int (*call_function)(int, int, uint64_t *, void *, char *);
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static __thread char message[512];
static bmcapi_entry *entries;
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;
void bmcapi_register(bmcapi_entry *entry)
{
    pthread_mutex_lock(&listing);
    entry->next = entries;
    __atomic_store_n(&entries, entry, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&listing);
}
void bmcapi_forget(bmcapi_entry *entry)
{
    bmcapi_entry **place;
    pthread_mutex_lock(&listing);
    for (place = &entries; *place; place = &(*place)->next)
        if (*place == entry) {
            *place = entry->next;
            break;
        }
    pthread_mutex_unlock(&listing);
}
static void load(void)
{
    PyObject *module = PyImport_ImportModule("bmcompiler.capi.serve");
    unsigned long long first, second, list = (uintptr_t)&entries;
    PyObject *found = module ? PyObject_CallMethod(module, "addresses", "K", list) : NULL;
    if (found && PyArg_ParseTuple(found, "KK", &first, &second)) {
        open_library = (int (*)(const char *))(uintptr_t)first;
        call_function = (int (*)(int, int, uint64_t *, void *, char *))(uintptr_t)second;
    } else
        PyErr_Print();
    Py_XDECREF(found);
    Py_XDECREF(module);
}
static void start(void)
{
    const char *python = getenv("BMCOMPILER_PYTHON");
    PyConfig config;
    PyStatus status;
    if (Py_IsInitialized()) {
        PyGILState_STATE state = PyGILState_Ensure();
        load();
        PyGILState_Release(state);
        return;
    }
    PyConfig_InitPythonConfig(&config);
    config.install_signal_handlers = 0;
    config.parse_argv = 0;
    status = PyConfig_SetBytesString(&config, &config.program_name, python ? python : PYTHON);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status)) {
        fprintf(stderr, "bmcompiler: Python does not start: %s\\n", status.err_msg ? status.err_msg : "");
        return;
    }
    load();
    PyEval_SaveThread();
}
const char *bmcapi_last_error(void) { return message; }
int bmcapi_call(bmcapi_library *library, int function, uint64_t *slots, void *result)
{
    pthread_once(&once, start);
    message[0] = 0;
    if (!call_function) {
        snprintf(message, sizeof message, "Python or bmcompiler cannot be loaded");
        return 1;
    }
    if (__atomic_load_n(&library->number, __ATOMIC_ACQUIRE) < 0) {
        pthread_mutex_lock(&opening);
        __atomic_store_n(&library->number, open_library(library->name), __ATOMIC_RELEASE);
        pthread_mutex_unlock(&opening);
    }
    if (library->number < 0) {
        snprintf(message, sizeof message, "the library %s cannot be loaded", library->name);
        return 1;
    }
    return call_function(library->number, function, slots, result, message);
}
"""


def starter() -> tuple[str, str]:
    """Header and source of the library that starts Python."""
    return _STARTER_HEADER, _STARTER_SOURCE


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
