/* A QEMU plugin: counts the instructions of each call of the model's run function, on any target.
 *
 *     -plugin qemu.so,thumb=1,run=ADDRESS,returned=ADDRESS,home0=ADDRESS,…,home3=ADDRESS,counts=FD,lifeline=FD
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
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);

enum { CALL_ROOM = 1 << 12, ROW_ROOM = 1 << 20 };

/* A basic block of a call of the run function. `site` is 0 in the run function itself, and the address after
 * its call in all functions that it calls. */
typedef struct {
    uint64_t executed;
    uint64_t taken; /* how often something else followed than the next instruction */
    uint32_t site, address, instructions, unused;
} bt_row;

typedef struct {
    uint64_t call_count;
    uint64_t calls[CALL_ROOM]; /* a ring: instructions of each call */
    uint64_t row_count;        /* of the last call, those that found no room included */
    bt_row rows[ROW_ROOM];
} bt_counts;

/* A translated block, and what was counted for it since it last became a row. */
typedef struct block {
    struct block *next_touched;
    uint64_t executed, taken;
    uint32_t address, end, instructions, at_home;
} block;

static bt_counts *counts;
static uint64_t thumb, run, returned;
static uint64_t home[4];  /* two ranges of addresses: the run function and the part of it that calls the layers */
static block *touched;    /* list of blocks that were counted for */
static block *last;       /* block that ran in this call */
static uint32_t site;     /* where it belongs */
static uint64_t executed; /* instructions of this call */
static int running;

/* Make rows of what was counted. */
static void write_rows(void)
{
    for (block *b = touched; b != NULL; b = b->next_touched) {
        if (counts->row_count < ROW_ROOM)
            counts->rows[counts->row_count] = (bt_row){ b->executed, b->taken, site, b->address, b->instructions, 0 };
        counts->row_count++;
        b->executed = b->taken = 0;
    }
    touched = NULL;
}

static void begin_call(void)
{
    counts->row_count = 0;
    executed = 0;
    site = 0;
    last = NULL;
    running = 1;
}

static void end_call(void)
{
    running = 0;
    write_rows();
    counts->calls[counts->call_count % CALL_ROOM] = executed;
    counts->call_count++;
}

/* Control has come to a block: by a jump, a call or a return, or because the block before it ends there. */
static void arrive(const block *b)
{
    if (last == NULL)
        return;
    last->taken += b->address != last->end;
    if (b->at_home != last->at_home) {
        write_rows();
        site = b->at_home ? 0 : last->end;
    }
}

static void on_block(unsigned vcpu, void *data)
{
    block *b = data;
    (void)vcpu;
    if (running)
        arrive(b);
    if (b->address == run && !running)
        begin_call();
    else if (b->address == returned && running)
        end_call();
    if (running) {
        if (b->executed++ == 0) {
            b->next_touched = touched;
            touched = b;
        }
        executed += b->instructions;
        last = b;
    }
}

/* QEMU's own result is too large where it has read bytes after the instruction. */
static uint64_t size(const struct qemu_plugin_insn *insn)
{
    const uint8_t *bytes = qemu_plugin_insn_data(insn);
    int wide = thumb ? bytes[1] >> 3 >= 0x1d : (bytes[0] & 3) == 3;
    return wide ? 4 : 2;
}

static void on_new_block(uint64_t id, struct qemu_plugin_tb *tb)
{
    size_t length = qemu_plugin_tb_n_insns(tb);
    const struct qemu_plugin_insn *final = qemu_plugin_tb_get_insn(tb, length - 1);
    uint64_t address = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
    block *b = malloc(sizeof *b);
    (void)id;
    if (b == NULL)
        abort();
    *b = (block){
        .address = (uint32_t)address,
        .end = (uint32_t)(qemu_plugin_insn_vaddr(final) + size(final)),
        .instructions = (uint32_t)length,
        .at_home = (address >= home[0] && address < home[1]) || (address >= home[2] && address < home[3]),
    };
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
    thumb = number(argc, argv, "thumb");
    run = number(argc, argv, "run");
    returned = number(argc, argv, "returned");
    for (int i = 0; i < 4; i++)
        home[i] = number(argc, argv, (const char[]){ 'h', 'o', 'm', 'e', (char)('0' + i), 0 });
    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, (int)number(argc, argv, "counts"), 0);
    if (counts == MAP_FAILED || pthread_create(&thread, NULL, end_with_parent, (void *)lifeline) != 0)
        return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_new_block);
    return 0;
}
