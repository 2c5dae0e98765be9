"""The misuse walk as a C program: each argument of each function in turn NULL, of the wrong kind, released, too large.

All other arguments are right. A call must leave a sentence that names the argument, and return its failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bmcompiler.capi.api import Prototype, Variable
from bmcompiler.capi.library import CLibrary

ANYWAY = (
    "any_ctx_t",
    "any_mem_t",
    "any_u32_t",
    "any_dev_t",
    "any_int_t",
    "any_shape_t",
    "bmmem_host_t",
    "pointer_t",
    "const_pointer_t",
    "names_t *",
    "address_t",
)
"""Types of arguments that nobody looks at, or whose NULL another argument decides about."""
REFUSED = {
    **dict.fromkeys(("bmerr_t", "bm_status_t", "errno_t"), "!= 0"),
    **dict.fromkeys(("status_t", "exec_id_t", "exec_time_t", "index_t", "count_t", "process_t"), "< 0"),
    "bm_cpu_status_t": "== BMCPU_FAULT",
    "pointer_t": "!= NULL",
}
"""What the results of a refused call are; all others are 0 or NULL. A kernel that looks has something to see."""


@dataclass(frozen=True)
class Walk:
    """How to call a library.

    Attributes:
        prelude: C that makes right values. good: C expressions by type of the table or by name. wrong: by type, what
        is refused.
        sentence: C expression for what was said last. reset: C before each call.
        beside: wrong values by parameter name, of which the function itself must say something.
        twins: the same wrong value for a parameter of another type: by type, from value to value.
        handles: types of handles: before they are made (all zero) and after `end` no function takes them.
        end: statements that release everything, which another thread runs; then they are over for all.
        lenient: functions that take NULL handles, and so do nothing before anything is made.
        lost: functions without handles that are refused where nothing is begun.
    """

    library: CLibrary
    prelude: str
    good: Mapping[str, str]
    wrong: Mapping[str, tuple[str, ...]]
    sentence: str = "bmcapi_last_error()"
    reset: str = ""
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    twins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    handles: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    lenient: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    globals: str = ""


def calls(walk: Walk) -> Iterator[str]:
    """One C statement for each misuse."""
    for prototype in walk.library.prototypes:
        if prototype.name in walk.without:
            continue
        for number, one in enumerate(prototype.parameters):
            for value in () if one.c_type in ANYWAY else _wrong(walk, one):
                yield _check(walk, prototype, number, value, one.name)
            pointer = walk.library.c_type(one.c_type).endswith("*")
            for value in walk.beside.get(one.name, ()) if not one.out else ():
                if (pointer and not value.startswith(("&", '"', "NULL"))) or (not pointer and value.startswith("&")):
                    continue  # of another function's parameter of the same name
                twin = walk.twins.get(one.c_type, {}).get(value, value)
                yield _check(walk, prototype, number, twin, "")


def _wrong(walk: Walk, one: Variable) -> Iterator[str]:
    yield from walk.wrong.get(one.c_type, ())
    c_type = walk.library.c_type(one.c_type)
    may = one.maybe or (c_type == "const dim4 *" and one.name.endswith("stride"))
    if (c_type.endswith("*") or one.array) and not may and not walk.wrong.get(one.c_type):
        yield "NULL"


def _check(walk: Walk, prototype: Prototype, number: int | None, value: str, word: str) -> str:
    """A call with this value for a parameter, or with right ones alone, whose sentence has the word."""
    setup, arguments = [], []
    for index, one in enumerate(prototype.parameters):
        c_type = walk.library.c_type(one.c_type)
        name = one.c_type.removeprefix("const ").rstrip(" *")
        if index == number:
            arguments.append(
                f"({c_type})({value})" if not one.array and c_type not in walk.library.api.structs else value
            )
        elif one.name in walk.good or (one.c_type in walk.good and not one.array):
            arguments.append(walk.good.get(one.name, walk.good.get(one.c_type, "")))
        elif one.out or one.array:
            arguments.append("(void *)scratch")
        elif name in walk.library.api.structs and c_type.endswith("*"):
            setup.append(f"{name} v{index}; {_filled(walk, name, f'v{index}')}")
            arguments.append(f"&v{index}")
        else:
            arguments.append("(void *)scratch" if c_type.endswith("*") else "1")
    call = f"{prototype.name}({', '.join(arguments)})"
    result = walk.library.result_type(prototype.result)
    plain = prototype.result == "void" or result in walk.library.api.structs or result in walk.library.by_value
    test = f"{call}; ok = 1;" if plain else f"ok = {call} {REFUSED.get(prototype.result, '== 0')};"
    given = "right arguments" if number is None else f"{prototype.parameters[number].name} = {value}"
    title = f"{prototype.name}: {given}".replace('"', "'")
    return f'{{ {" ".join(setup)} {walk.reset} {test} said(ok, "{title}", "{word}", {walk.sentence}); }}'


def _filled(walk: Walk, name: str, variable: str) -> str:
    """Statements that give every field of a structure a right value, of those that have one."""
    text = f"memset(&{variable}, 0, sizeof {variable});"
    for one in walk.library.fields(name):
        if one.c_type in walk.good and not one.array and one.c_type.endswith("*"):
            text += f" {variable}.{one.name} = {walk.good[one.c_type]};"
        elif one.array:
            continue
        elif not one.c_type.endswith("*") and one.c_type not in walk.library.api.structs:
            text += f" {variable}.{one.name} = 1;"
    return text


def strangers(walk: Walk, *, begun: bool) -> Iterator[tuple[str, str]]:
    """By function with a handle: a statement that calls it with right arguments whose handles are none, or over."""
    for prototype in walk.library.prototypes:
        places = [index for index, one in enumerate(prototype.parameters) if one.c_type in walk.handles]
        if places and prototype.name not in walk.without and (begun or prototype.name not in walk.lenient):
            good = walk.good[prototype.parameters[places[0]].c_type]
            yield prototype.name, _check(walk, prototype, places[0], good, "")
        elif prototype.name in walk.lost:
            yield prototype.name, _check(walk, prototype, None, "", prototype.name)


def steps(walk: Walk, name: str) -> str:
    """A C function `name` that makes the calls; 200 at most in one function, for the compiler's sake."""
    parts = list(calls(walk))
    pieces = ["\n".join(parts[first : first + 200]) for first in range(0, len(parts), 200)]
    functions = "".join(f"static void {name}{index}(void) {{ {piece} }}\n" for index, piece in enumerate(pieces))
    return f"{functions}static void {name}(void) {{ {' '.join(f'{name}{i}();' for i in range(len(pieces)))} }}\n"


def head(walk: Walk, *headers: str) -> str:
    """What stands before the calls: `bad` and `count` are what `said` has seen."""
    includes = "".join(f"#include <{one}>\n" for one in (*headers, "stdio.h", "string.h"))
    return f"""{includes}
static int bad, count, ok;
static char scratch[4096];
static void said(int right, const char *call, const char *word, const char *sentence)
{{
    count++;
    if (right && sentence && *sentence && strstr(sentence, word))
        return;
    bad++;
    printf("%s -> %d, '%s'\\n", call, right, sentence ? sentence : "");
}}
{walk.globals}
"""


def whole_life(walk: Walk, *headers: str) -> str:
    """The program: calls before anything is made; misuse in this thread, then in another with the same handles, which
    releases them; calls after that. Prints what is wrong and the number of calls, ends with 0 where all is right.
    """
    before, after = (" ".join(call for _, call in strangers(walk, begun=begun)) for begun in (False, True))
    released = " ".join(f'{walk.reset} {one}; right("{one}", {walk.sentence});' for one in walk.end)
    return f"""{head(walk, *headers, "pthread.h")}{steps(walk, "part")}
static void right(const char *call, const char *sentence)
{{
    count++;
    if (*sentence)
        bad++, printf("%s -> '%s'\\n", call, sentence);
}}
static void before(void) {{ {before} }}
static void after(void) {{ {after} }}
static void *other(void *nothing)
{{
    part();
    {released}
    return nothing;
}}
int main(void)
{{
    pthread_t thread;
    before();
    {walk.prelude}
    part();
    if (pthread_create(&thread, NULL, other, NULL) || pthread_join(thread, NULL))
        return 9;
    after();
    printf("%d calls\\n", count);
    return bad != 0;
}}
"""


def first_calls(walk: Walk, *headers: str) -> str:
    """The program: each stranger's call is the very first one of a process of its own, its handles zero."""
    tries = "".join(
        f"if (!(child = fork())) {{ bad = 0; {call} fflush(stdout); _exit(bad); }}\n"
        f'bad += !ended_well(child, "{name}");\n'
        for name, call in strangers(walk, begun=False)
    )
    return f"""{head(walk, *headers, "sys/wait.h", "unistd.h")}
static int ended_well(pid_t child, const char *name)
{{
    int status;
    count++;
    if (waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status))
        return 1;
    printf("%s: status %x\\n", name, status);
    return 0;
}}
int main(void)
{{
    pid_t child;
    {tries}
    printf("%d calls\\n", count);
    return bad != 0;
}}
"""


def text(walk: Walk, *headers: str) -> str:
    """The misuse as a function `walk`: prints what is wrong and the number of calls, gives 0 where all were refused."""
    return f"""{head(walk, *headers)}{steps(walk, "part")}
int walk(void);
int walk(void)
{{
    {walk.prelude}
    part();
    printf("%d calls\\n", count);
    return bad != 0;
}}
"""
