#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include "bmcapi.h"
/* Of Python: what finds a function, what becomes of an exception, the class of refusals, the objects behind handles, what
   other numbers stand for, and what numbers an object. */
static PyObject *find, *fail, *refusal, *handles, *unknown, *number_of;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread char message[512];
static __thread bmcapi_place here;
bmcapi_place *bmcapi_here(void) { return &here; }
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
bmcapi_entry **bmcapi_registered(void) { return &entries; }
static void say(const char *text) { snprintf(message, sizeof message, "%s", text); }
/* Nothing that is loaded is rubbish: who looks for some meanwhile makes the first call longer. `own`: this library started
   Python. */
static void load(int own)
{
    int collects = PyGC_Disable();
    PyObject *module = PyImport_ImportModule("bmcompiler.capi.serve");
    unsigned long long list = (uintptr_t)&entries, words = (uintptr_t)say, place = (uintptr_t)bmcapi_here;
    PyObject *found = module ? PyObject_CallMethod(module, "begin", "KKKi", list, words, place, own) : NULL;
    if (!found || !PyArg_ParseTuple(found, "OOOOOO", &find, &fail, &refusal, &handles, &unknown, &number_of))
        PyErr_Print();
    Py_XDECREF(module); /* what was found stays for ever */
    if (collects)
        PyGC_Enable();
}
/* Extension modules do not name libpython among the libraries they need: its symbols must be there for all, also where
   this library was opened for its own user only (dlopen without RTLD_GLOBAL). */
static void show_python(void)
{
    Dl_info found;
    if (dladdr((void *)(uintptr_t)Py_IsInitialized, &found) && found.dli_fname)
        dlopen(found.dli_fname, RTLD_LAZY | RTLD_GLOBAL | RTLD_NOLOAD);
}
/* Where this library was made with a Python of its own: that folder, beside the library's. */
static int set_home(PyConfig *config)
{
    Dl_info found;
    char home[PATH_MAX + sizeof OWN], *slash;
    PyStatus status;
    if (PYTHON[0])
        return 1;
    if (!dladdr((void *)(uintptr_t)bmcapi_last_error, &found) || !realpath(found.dli_fname, home))
        return 0;
    slash = strrchr(home, '/');
    if (!slash)
        return 0;
    strcpy(slash, OWN);
    config->user_site_directory = 0;
    status = PyConfig_SetBytesString(config, &config->home, home);
    return !PyStatus_Exception(status);
}
/* Python as its installation has it: PYTHONHOME and PYTHONPATH are meant for the user's own Python. Variables of
   memory (PYTHONMALLOC) are read. */
static void start(void)
{
    PyPreConfig before;
    const char *python = getenv("BMCOMPILER_PYTHON");
    PyConfig config;
    PyStatus status;
    if (Py_IsInitialized()) {
        PyGILState_STATE state = PyGILState_Ensure();
        load(0);
        PyGILState_Release(state);
        return;
    }
    show_python();
    PyPreConfig_InitPythonConfig(&before);
    before.parse_argv = 0;
    status = Py_PreInitialize(&before);
    if (PyStatus_Exception(status)) {
        fprintf(stderr, "bmcompiler: Python does not start: %s\n", status.err_msg ? status.err_msg : "");
        return;
    }
    PyConfig_InitPythonConfig(&config);
    config.use_environment = 0;
    config.install_signal_handlers = 0;
    config.parse_argv = 0;
    if (python || PYTHON[0])
        status = PyConfig_SetBytesString(&config, &config.program_name, python ? python : PYTHON);
    if (!python && !PyStatus_Exception(status) && !set_home(&config))
        status = PyStatus_Error("its folder beside the libraries is not there");
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status)) {
        fprintf(stderr, "bmcompiler: Python does not start: %s\n", status.err_msg ? status.err_msg : "");
        return;
    }
    load(1);
    PyEval_SaveThread();
}
const char *bmcapi_last_error(void) { return message; }
/* Whether Python's function is there, now or from an earlier call. */
static int resolved(const bmcapi_library *library, int number)
{
    bmcapi_function *one = &library->functions[number];
    PyObject *found, *function, *letters;
    int collects;
    if (one->function)
        return 1;
    collects = PyGC_Disable();
    found = PyObject_CallFunction(find, "si", library->home, number);
    if (collects)
        PyGC_Enable();
    if (!found || !PyArg_ParseTuple(found, "OU", &function, &letters))
        return 0;
    one->letters = PyUnicode_AsUTF8(letters);
    one->function = function; /* both stay for ever */
    return one->letters != NULL;
}
/* An argument as Python's function takes it: letters are those of Python's `struct`, `o` is a handle. */
static PyObject *argument(char letter, uint64_t slot)
{
    PyObject *number, *found;
    switch (letter) {
    case 'b': return PyLong_FromLong((int8_t)slot);
    case 'B': return PyLong_FromLong((uint8_t)slot);
    case 'h': return PyLong_FromLong((int16_t)slot);
    case 'H': return PyLong_FromLong((uint16_t)slot);
    case 'i': return PyLong_FromLong((int32_t)slot);
    case 'I': return PyLong_FromUnsignedLong((uint32_t)slot);
    case 'l': return PyLong_FromLongLong((int64_t)slot);
    case 'L': return PyLong_FromUnsignedLongLong(slot);
    case 'f': return PyFloat_FromDouble(*(float *)(uintptr_t)slot);
    case '?': return PyBool_FromLong(slot != 0);
    }
    if (!slot)
        return Py_INCREF(Py_None), Py_None;
    if (!(number = PyLong_FromUnsignedLongLong(slot)))
        return NULL;
    found = PyDict_GetItemWithError(handles, number);
    Py_DECREF(number);
    if (!found && !PyErr_Occurred())
        found = unknown;
    Py_XINCREF(found);
    return found;
}
/* Store what a function gave; with the letter `-` it gives nothing. */
static int store(char letter, void *result, PyObject *found)
{
    unsigned long long bits;
    double real;
    int beyond;
    if (letter == '-')
        return 1;
    if (letter == '?') {
        int truth = PyObject_IsTrue(found);
        *(bool *)result = truth > 0;
        return truth >= 0;
    }
    if (letter == 'f') {
        real = PyFloat_AsDouble(found);
        *(float *)result = (float)real;
        return !PyErr_Occurred();
    }
    if (letter == 'o') {
        PyObject *number = found == Py_None ? PyLong_FromLong(0) : PyObject_CallOneArg(number_of, found);
        *(uint64_t *)result = number ? PyLong_AsUnsignedLongLong(number) : 0;
        Py_XDECREF(number);
        return number != NULL;
    }
    bits = (unsigned long long)PyLong_AsLongLongAndOverflow(found, &beyond);
    if (beyond > 0 && !PyErr_Occurred())
        bits = PyLong_AsUnsignedLongLong(found);
    if (beyond < 0 || (bits == (unsigned long long)-1 && PyErr_Occurred())) {
        if (beyond)
            PyErr_Format(refusal, "%S is more than 64 bits hold", found);
        return 0;
    }
    switch (letter) {
    case 'b': case 'B': *(uint8_t *)result = (uint8_t)bits; break;
    case 'h': case 'H': *(uint16_t *)result = (uint16_t)bits; break;
    case 'i': case 'I': *(uint32_t *)result = (uint32_t)bits; break;
    default: *(uint64_t *)result = bits;
    }
    return 1;
}
/* Call a function of numbers and handles. */
static int call(const bmcapi_function *one, const uint64_t *slots, int count, void *result)
{
    PyObject *values[MOST_VALUES], *found = NULL;
    int made = 0, done;
    while (made < count && (values[made] = argument(one->letters[made + 1], slots[made])))
        made++;
    if (made == count)
        found = PyObject_Vectorcall(one->function, values, count, NULL);
    done = found && store(one->letters[0], result, found);
    while (made--)
        Py_DECREF(values[made]);
    Py_XDECREF(found);
    return done;
}
/* Call a function that reads its arguments itself, and stores its results. */
static int call_raw(const bmcapi_function *one, const uint64_t *slots, int count, void *result)
{
    PyObject *values[] = {PyTuple_New(count), PyLong_FromVoidPtr(result)}, *found = NULL;
    int made;
    for (made = 0; values[0] && made < count; made++)
        PyTuple_SET_ITEM(values[0], made, PyLong_FromUnsignedLongLong(slots[made]));
    if (values[0] && values[1] && !PyErr_Occurred())
        found = PyObject_Vectorcall(one->function, values, 2, NULL);
    Py_XDECREF(values[0]);
    Py_XDECREF(values[1]);
    Py_XDECREF(found);
    return found != NULL;
}
static void explain(void)
{
    PyObject *type, *value, *trace, *done;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    done = PyObject_CallOneArg(fail, value ? value : Py_None);
    if (!done)
        PyErr_Print();
    Py_XDECREF(done);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}
int bmcapi_call(const bmcapi_library *library, int number, const uint64_t *slots, int count, void *result)
{
    const bmcapi_function *one = &library->functions[number];
    PyGILState_STATE state;
    int done;
    pthread_once(&once, start);
    message[0] = 0;
    if (!find) {
        say("Python or bmcompiler cannot be loaded");
        return 1;
    }
    state = PyGILState_Ensure();
    done = resolved(library, number) && (one->letters[0] ? call : call_raw)(one, slots, count, result);
    if (!done)
        explain();
    PyGILState_Release(state);
    return !done;
}
