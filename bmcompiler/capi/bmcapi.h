/* What the libraries share. The last error of the calling thread, "" without one: */
#ifndef BMCAPI_H
#define BMCAPI_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
const char *bmcapi_last_error(void);
/* For the libraries themselves: a function of Python's with the letters of its result and arguments, from its first call
   on. A call gives 1 when it was refused, and leaves `result` alone. */
typedef struct { void *function; const char *letters; } bmcapi_function;
typedef struct { const char *home; bmcapi_function *functions; } bmcapi_library;
int bmcapi_call(const bmcapi_library *library, int number, const uint64_t *slots, int count, void *result);
/* Where the calling thread's next call stands in its program; headers say it before each call of a kernel. */
typedef struct { const char *file; int line; } bmcapi_place;
bmcapi_place *bmcapi_here(void);
static inline void bmcapi_at(const char *file, int line)
{
    bmcapi_place *here = bmcapi_here();
    here->file = file;
    here->line = line;
}
/* Functions of the program that Python may call by their names, such as kernels. */
typedef struct bmcapi_entry {
    const char *name;
    void (*function)(const void *);
    struct bmcapi_entry *next;
} bmcapi_entry;
void bmcapi_register(bmcapi_entry *entry);
void bmcapi_forget(bmcapi_entry *entry);
/* For Python: where the list of them begins. */
bmcapi_entry **bmcapi_registered(void);
#ifdef __cplusplus
}
#endif
#endif
