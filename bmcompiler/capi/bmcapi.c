#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <limits.h>
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
        load();
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
