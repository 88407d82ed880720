/* An AVR chip on libsimavr: standard input and output are the two ends of its serial line.
 *
 *     simavr MCU HZ UART BAUD IMAGE.bin run returned home0 home1 home2 home3 interrupt stack_limit COUNTS_FD
 *
 * Instructions and cycles of each call of the model's run function are counted from its first instruction to the one at
 * `returned`, without the handler of the interrupt whose vector is at `interrupt`. The numbers go to an open file that
 * Baretorch maps (simavr.py mirrors bt_counts) and reads while this runs. The program ends with its input.
 *
 * Bytes come at the rate of the line, whether the image takes them or not. A rate of its own that is more than 2.5 % off,
 * and a stack that is too deep, end the emulation with a message. */
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <simavr/avr_ioport.h>
#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#pragma GCC diagnostic pop

enum { CALL_ROOM = 1 << 12, ROW_ROOM = 1 << 20, QUEUE_ROOM = 1 << 16 };
enum { UCSRA = 0, UBRRL = 4, UBRRH = 5, DOUBLE = 2 }; /* of the USART */
enum { IDLE_CYCLES = 100000, LOOK_STEPS = 4096 };

/* A basic block of a call of the run function. `site` is 0 in the run function itself, and the address after
 * its call in all functions that it calls. */
typedef struct {
    uint64_t executed;
    uint64_t taken; /* how often something else followed than the next instruction */
    uint32_t site, address, instructions, unused;
} bt_row;

typedef struct {
    uint64_t call_count;
    uint64_t calls[CALL_ROOM];  /* a ring: instructions of each call */
    uint64_t cycles[CALL_ROOM]; /* and cycles */
    uint64_t row_count;         /* of the last call, those that found no room included */
    bt_row rows[ROW_ROOM];
} bt_counts;

/* What begins at a word of flash and ends with the first instruction that may go elsewhere. */
typedef struct block {
    struct block *next_touched;
    uint64_t executed, taken;
    uint32_t end, instructions;
} block;

static avr_t *avr;
static bt_counts *counts;
static block *blocks;
static uint32_t run, returned, home[4], interrupt, stack_limit;

static block *touched; /* list of blocks that were counted for */
static block *here;    /* block that runs in this call; NULL if one begins */
static block *last;    /* block that ran before it */
static uint32_t site;
static int running, handling;
static uint64_t executed, call_began, handler_began, handlers;

static uint8_t queue[QUEUE_ROOM]; /* bytes on their way to the image */
static uint32_t queue_begin, queue_end;
static uint64_t next_byte, last_talk; /* in cycles */
static uint32_t uart, baud;
static int full, told_rate;

static void fail(const char *text)
{
    fprintf(stderr, "%s\n", text);
    exit(1);
}

static uint32_t word_at(uint32_t pc)
{
    return pc + 1 <= avr->flashend ? (uint32_t)(avr->flash[pc] | avr->flash[pc + 1] << 8) : 0;
}

static int is_long(uint32_t word)
{
    return (word & 0xfc0f) == 0x9000 || (word & 0xfe0c) == 0x940c;
}

/* Whether something else may follow than the next instruction: jumps, calls, returns, branches and skips. */
static int ends_block(uint32_t word)
{
    return word >> 13 == 6 || (word & 0xf800) == 0xf000 || (word & 0xfe0c) == 0x940c || (word & 0xff0f) == 0x9508 ||
           (word & 0xff0f) == 0x9509 || (word & 0xfeff) == 0x9409 || (word & 0xfc00) == 0x1000 ||
           (word & 0xfc08) == 0xfc00 || (word & 0xfd00) == 0x9900;
}

static int at_home(uint32_t pc)
{
    return (pc >= home[0] && pc < home[1]) || (pc >= home[2] && pc < home[3]);
}

static uint32_t address_of(const block *b)
{
    return (uint32_t)(b - blocks) * 2;
}

/* Make rows of what was counted. */
static void write_rows(void)
{
    for (block *b = touched; b != NULL; b = b->next_touched) {
        if (counts->row_count < ROW_ROOM)
            counts->rows[counts->row_count] = (bt_row){ b->executed, b->taken, site, address_of(b), b->instructions, 0 };
        counts->row_count++;
        b->executed = b->taken = 0;
    }
    touched = NULL;
}

static void begin_call(void)
{
    counts->row_count = 0;
    executed = handlers = 0;
    site = 0;
    here = last = NULL;
    call_began = avr->cycle;
    running = 1;
}

static void end_call(void)
{
    running = 0;
    write_rows();
    counts->calls[counts->call_count % CALL_ROOM] = executed;
    counts->cycles[counts->call_count % CALL_ROOM] = avr->cycle - call_began - handlers;
    counts->call_count++;
    last_talk = avr->cycle;
}

/* Measures the block that begins at pc. */
static void learn(block *b, uint32_t pc)
{
    uint32_t word;
    do {
        word = word_at(pc);
        pc += is_long(word) ? 4 : 2;
        b->instructions++;
    } while (!ends_block(word));
    b->end = pc;
}

/* Control has come to a block. */
static void arrive(uint32_t pc)
{
    block *b = &blocks[pc / 2];
    if (b->instructions == 0)
        learn(b, pc);
    if (last != NULL) {
        last->taken += pc != last->end;
        if (at_home(pc) != at_home(address_of(last))) {
            write_rows();
            site = at_home(pc) ? 0 : last->end;
        }
    }
    if (b->executed++ == 0) {
        b->next_touched = touched;
        touched = b;
    }
    here = b;
}

/* One instruction of the image. */
static void step(void)
{
    const uint32_t pc = avr->pc, word = word_at(pc);
    if (!handling) {
        if (pc == run && !running)
            begin_call();
        else if (pc == returned && running)
            end_call();
        if (running) {
            if (here == NULL)
                arrive(pc);
            executed++;
            if (ends_block(word)) {
                last = here;
                here = NULL;
            }
        }
    }
    const int state = avr_run(avr);
    if (state == cpu_Done || state == cpu_Crashed)
        fail("the core stopped: no instruction, or no memory, where it went");
    if ((word & 0xfe0f) == 0x920f || word >> 12 == 13 || (word & 0xfe0e) == 0x940e) { /* PUSH, RCALL, CALL */
        const uint32_t sp = (uint32_t)(avr->data[R_SPL] | avr->data[R_SPH] << 8);
        if (sp + 1 < stack_limit)
            fail("the stack has overflowed its limit");
    }
    if (handling && word == 0x9518) { /* RETI */
        handling = 0;
        handlers += avr->cycle - handler_began;
    }
    if (!handling && avr->pc == interrupt) {
        handling = 1;
        handler_began = avr->cycle;
    }
}

static void check_rate(void)
{
    const uint8_t *registers = avr->data + uart;
    const uint32_t divider = (uint32_t)(registers[UBRRL] | registers[UBRRH] << 8) + 1;
    const uint32_t rate = avr->frequency / ((registers[UCSRA] & DOUBLE ? 8 : 16) * divider);
    const int32_t off = (int32_t)rate - (int32_t)baud;
    if (40 * (uint32_t)abs(off) > baud)
        fail("the console's rate is more than 2.5 % off");
    told_rate = 1;
}

static void on_output(struct avr_irq_t *irq, uint32_t value, void *param)
{
    const uint8_t byte = (uint8_t)value;
    (void)irq, (void)param;
    if (!told_rate)
        check_rate();
    if (write(1, &byte, 1) != 1)
        exit(0);
    last_talk = avr->cycle;
}

static void on_full(struct avr_irq_t *irq, uint32_t value, void *param)
{
    (void)irq, (void)value, (void)param;
    full = 1;
}

static void on_room(struct avr_irq_t *irq, uint32_t value, void *param)
{
    (void)irq, (void)value, (void)param;
    full = 0;
}

/* Takes what has come on standard input; waits for it if `wait`. */
static void look(int wait)
{
    struct pollfd in = { .fd = 0, .events = POLLIN };
    if (queue_end > QUEUE_ROOM / 2 && queue_begin == queue_end)
        queue_begin = queue_end = 0;
    if (queue_end == QUEUE_ROOM || poll(&in, 1, wait ? -1 : 0) <= 0)
        return;
    const ssize_t got = read(0, queue + queue_end, QUEUE_ROOM - queue_end);
    if (got <= 0)
        exit(0);
    queue_end += (uint32_t)got;
    if (wait)
        next_byte = last_talk = avr->cycle;
}

static void feed(avr_irq_t *input)
{
    if (queue_begin == queue_end || avr->cycle < next_byte)
        return;
    if (full)
        fail("the image does not take bytes as fast as they come");
    avr_raise_irq(input, queue[queue_begin++]);
    next_byte = avr->cycle + (uint64_t)avr->frequency * 10 / baud;
    last_talk = avr->cycle;
}

static void load(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        fail("no image");
    const size_t bytes = fread(avr->flash, 1, avr->flashend + 1, file);
    avr->codeend = (uint32_t)bytes;
    fclose(file);
}

static uint32_t number(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 0);
}

static void quiet(struct avr_t *core, const int level, const char *format, va_list list)
{
    (void)core, (void)level, (void)format, (void)list;
}

int main(int argc, char **argv)
{
    if (argc != 15)
        fail("fourteen arguments are needed");
    avr_global_logger_set(quiet);
    avr = avr_make_mcu_by_name(argv[1]);
    if (avr == NULL)
        fail("libsimavr does not know the chip");
    avr_init(avr);
    avr->frequency = number(argv[2]);
    uart = number(argv[3]);
    baud = number(argv[4]);
    load(argv[5]);
    run = number(argv[6]);
    returned = number(argv[7]);
    for (int i = 0; i < 4; i++)
        home[i] = number(argv[8 + i]);
    interrupt = number(argv[12]);
    stack_limit = number(argv[13]);
    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, (int)number(argv[14]), 0);
    blocks = calloc(avr->flashend / 2 + 1, sizeof *blocks);
    if (counts == MAP_FAILED || blocks == NULL)
        fail("no memory");
    avr->run_cycle_limit = 1; /* one instruction at a time */

    uint32_t flags = 0;
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags); /* it neither prints nor sleeps */
    avr_irq_t *input = avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_INPUT);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUTPUT), on_output, NULL);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUT_XOFF), on_full, NULL);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUT_XON), on_room, NULL);
    for (uint64_t steps = 0;; steps++) {
        feed(input);
        step();
        if (steps % LOOK_STEPS == 0)
            look(0);
        if (!running && queue_begin == queue_end && avr->cycle - last_talk > IDLE_CYCLES)
            look(1);
    }
}
