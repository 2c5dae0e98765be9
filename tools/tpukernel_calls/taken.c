/* Loaded before the vendor's C model, in place of its function that takes a command: keeps each one, then runs it. */
#include <string.h>

enum { BYTES = 1 << 20, COMMANDS = 1 << 14 };
extern int get_cmd_bytesize(void *command, int engine);
extern void execute_command(int node, void *command, int engine);
static unsigned char taken[BYTES];
static int sizes[COMMANDS], engines[COMMANDS], count, filled;

void cmodel_call_atomic(int node, void *command, int engine)
{
    int size = get_cmd_bytesize(command, engine);
    memcpy(taken + filled, command, size);
    sizes[count] = size;
    engines[count++] = engine;
    filled += size;
    execute_command(node, command, engine);
}

unsigned char *taken_bytes(void) { return taken; }
int *taken_sizes(void) { return sizes; }
int *taken_engines(void) { return engines; }
int taken_count(void) { return count; }
