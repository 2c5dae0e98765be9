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
