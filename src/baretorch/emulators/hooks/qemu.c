/* A QEMU plugin: counts the instructions of each call of the model's run function, on any target.
 *
 *     -plugin qemu.so,run=ADDRESS,returned=ADDRESS,origin=ADDRESS,bytes=SIZE,counts=FD,lifeline=FD
 *
 * The numbers go to an open file that Baretorch maps (qemu.py mirrors bt_counts): it reads them while QEMU runs.
 * Counting is by translated block: the run function is entered by a call and left by a return, both of which end one.
 * QEMU ends with the process that started it: that one holds the other end of the pipe `lifeline`.
 *
 * No package ships QEMU's header, so the part of its interface that is used is declared here.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*on_translation)(uint64_t id, struct qemu_plugin_tb *tb);
typedef void (*on_execution)(unsigned vcpu, void *data);
enum { NO_REGISTERS };

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, on_translation callback);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, on_execution callback, int registers, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);

enum { CALL_ROOM = 1 << 12 };

typedef struct {
    uint64_t call_count;
    uint64_t calls[CALL_ROOM]; /* a ring: instructions of each call */
    uint64_t histogram[];      /* per halfword of code: how often the last call ran the instruction there */
} bt_counts;

typedef struct block {
    struct block *next;
    uint64_t executed; /* during this call */
    size_t length;
    uint64_t addresses[];
} block;

static bt_counts *counts;
static uint64_t run, returned, origin, bytes;
static block *blocks;
static uint64_t executed; /* instructions of this call */
static int running;

static void begin_call(void)
{
    for (block *b = blocks; b != NULL; b = b->next)
        b->executed = 0;
    executed = 0;
    running = 1;
}

static void end_call(void)
{
    running = 0;
    memset(counts->histogram, 0, bytes / 2 * sizeof counts->histogram[0]);
    for (const block *b = blocks; b != NULL; b = b->next)
        for (size_t i = 0; b->executed && i < b->length; i++)
            if (b->addresses[i] - origin < bytes)
                counts->histogram[(b->addresses[i] - origin) / 2] += b->executed;
    counts->calls[counts->call_count % CALL_ROOM] = executed;
    counts->call_count++;
}

static void on_block(unsigned vcpu, void *data)
{
    block *b = data;
    (void)vcpu;
    if (b->addresses[0] == run && !running)
        begin_call();
    else if (b->addresses[0] == returned && running)
        end_call();
    if (running) {
        b->executed++;
        executed += b->length;
    }
}

static void on_new_block(uint64_t id, struct qemu_plugin_tb *tb)
{
    size_t length = qemu_plugin_tb_n_insns(tb);
    block *b = malloc(sizeof *b + length * sizeof b->addresses[0]);
    (void)id;
    if (b == NULL)
        abort();
    b->executed = 0;
    b->length = length;
    for (size_t i = 0; i < length; i++)
        b->addresses[i] = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, i));
    b->next = blocks;
    blocks = b;
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, NO_REGISTERS, b);
}

static void *end_with_parent(void *fd)
{
    char byte;
    while (read((int)(intptr_t)fd, &byte, 1) > 0)
        ;
    _exit(0);
}

/* The number of NAME=NUMBER among the plugin's arguments. */
static uint64_t number(int argc, char **argv, const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
            return strtoull(argv[i] + length + 1, NULL, 0);
    return 0;
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
    pthread_t thread;
    intptr_t lifeline = (intptr_t)number(argc, argv, "lifeline");
    (void)info;
    run = number(argc, argv, "run");
    returned = number(argc, argv, "returned");
    origin = number(argc, argv, "origin");
    bytes = number(argc, argv, "bytes");
    size_t size = sizeof *counts + bytes / 2 * sizeof counts->histogram[0];
    counts = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, (int)number(argc, argv, "counts"), 0);
    if (counts == MAP_FAILED || pthread_create(&thread, NULL, end_with_parent, (void *)lifeline) != 0)
        return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_new_block);
    return 0;
}
