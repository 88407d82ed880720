/* The state of an emulated chip, for the hooks. Python reads the structures and constants from this file (structs.py), and
 * fills them in (state.py). A line of a structure declares fields of one type; values are numbers, or two with an operator. */
#ifndef BT_UNICORN_H
#define BT_UNICORN_H

#include <stddef.h>
#include <stdint.h>

enum { CONSTANT, CONSOLE_STATUS, CONSOLE_DATA, COUNTER, CORE_NUMBER, MAIL_STATUS, MAIL_SEND, MAIL_TAKE, KEPT,
       MODELLED, READ_BACK };
enum { NOT_STOPPED, WAITS_FOR_INPUT, OUTPUT_IS_FULL, TIME_IS_UP, OTHERS_TURN, RACE, CHIP_CHANGED, CONSOLE_IS_DEAD,
       INTERRUPTED, BUS_TURN, WATCHDOG_BITES };
enum { AWAKE, UNTIL_INPUT, FOR_EVER, UNTIL_BITTEN };
enum { NO_ALARM, SYSTICK, NRF_TIMER };
enum { NO_WATCHDOG, RP, IWDG, NRF_WDT };
enum { DUE, WRITTEN, READ }; /* why the model is called */
enum { USB_READ, USB_WRITTEN, USB_MEMORY_WRITTEN };
enum { ANSWERS = 1, TRANSMITS = 2, RECEIVES = 4 }; /* the console */
enum { CODE, DATA, RAM_DATA, VISIT_ENDS, CALL_BEGINS }; /* kinds of bt_event */

#define MAIL_ROOM 4u /* words; the RP2040 has room for eight */
#define MAIL_VALID 1u
#define MAIL_READY 2u
#define KEPT_ROOM 2
#define MEETINGS 4
#define IRQ_WORDS 8 /* of 32 interrupts each */
#define NO_IRQ 0xffffffffu
#define NEVER UINT64_MAX
#define VIEWS 2
#define USB_MEMORY 0x1000u
#define USB_CONTROLS 0x100u /* the part of it that controls endpoints and buffers */
#define USB_REGISTERS 0x10000u

/* A register that does more than read as zero. */
typedef struct {
    uint32_t address;
    uint32_t kind;
    uint32_t empty;  /* CONSOLE_STATUS: its value while no input is there */
    uint32_t filled; /* CONSOLE_STATUS: while some is; CONSTANT: always; COUNTER: the bits that read inverted;
                        KEPT: which of a core's kept registers it is; MODELLED, READ_BACK: which of values */
} bt_register;

/* The basic block that starts at a halfword of code; what was counted for it since it last became a row. */
typedef struct {
    uint64_t executed;
    uint64_t taken; /* how often something else followed than the next instruction */
    uint32_t bytes;
    uint32_t instructions;
} bt_block;

/* A basic block of a call of the run function. `site` is 0 in the run function itself, and the address after
 * its call in all functions that it calls. */
typedef struct {
    uint64_t executed, taken;
    uint32_t site, address, instructions, unused;
} bt_row;

/* Who touched a byte: a core's phase, block and site. A phase is a number of meetings entered, 1 for none yet. */
typedef struct {
    uint32_t phase, pc, site;
} bt_access;

/* What each core did to a byte of RAM last. */
typedef struct {
    bt_access read[2], wrote[2];
} bt_byte;

/* The first byte that both cores touched in one phase. */
typedef struct {
    uint32_t found, address, phase;
    uint32_t writes[2]; /* which of the cores did */
    bt_access by[2];
} bt_race;

/* A timer that can end sleep. */
typedef struct {
    uint64_t due;     /* clock: when it rings next */
    uint32_t reload;  /* SysTick: instructions in a round, less one; else what it is compared with */
    uint32_t on;
    uint32_t wakes;   /* whether it interrupts */
    uint32_t rang;    /* and was not read since */
    uint32_t pending; /* SysTick: it has interrupted, and that was not cleared */
    uint32_t unused;
} bt_alarm;

/* A line of a cache: its number and 1, 0 for none; and which of its parts are there, a bit for each fill. */
typedef struct {
    uint32_t number;
    uint32_t filled;
} bt_line;

/* The ways of a set are next to each other, the most recently used one first. */
typedef struct {
    bt_line *lines;
    uint32_t ways, set_mask, line_bits;
    uint32_t on;
} bt_cache;

/* A way in which flash may be read: where no source documents it, two ways are simulated. */
typedef struct {
    bt_cache caches[2];
    uint32_t cache_of[2]; /* which of them serves CODE and DATA */
    uint32_t fill_bits;
    uint32_t next;        /* the address after the last fill, or the next one that AHEAD reads */
    uint64_t when;        /* clock of that fill */
    uint32_t window;      /* instructions within which the next fill continues; 0: none does */
    uint32_t page;        /* bytes, at whose multiples none does; 0: no such */
    uint32_t ahead;       /* code after the last fetch is read ahead */
} bt_view;

/* Fills with a new address, of CODE and of DATA, and those that continued. */
typedef struct {
    uint64_t fills[2][2];
} bt_fills;

/* What was read from flash during a visit to a site, as in bt_row. */
typedef struct {
    uint32_t site, unused;
    bt_fills fills[VIEWS];
} bt_visit;

/* An access, for others to check the simulation by. */
typedef struct {
    uint64_t clock;
    uint32_t address;
    uint16_t bytes;
    uint8_t kind;
    uint8_t on; /* 1 if the cache is, and 2 for what an interrupt handler does */
} bt_event;

typedef struct {
    bt_view views[VIEWS];
    bt_event *events; /* NULL: not recorded */
    uint64_t event_count;
    uint32_t event_room;
    uint32_t view_count;
    uint32_t origin, bytes;
} bt_flash;

/* What restarts the chip unless it is fed. */
typedef struct {
    uint64_t due;                  /* clock: when it bites */
    double instructions_per_count; /* of the core's, while that runs at its full rate */
    uint32_t kind, base;
    uint32_t cause[3];  /* address and bit of the register with the reason of the last start, and the bit that clears it */
    uint32_t select[2]; /* address and bits of the register that selects what to restart */
    uint32_t count, on, open, selects;
    uint32_t bit;     /* why the chip started */
    uint32_t scratch; /* a register that a bite does not clear */
} bt_watchdog;

typedef struct bt_core bt_core;

/* What the cores share. */
typedef struct {
    int (*stop)(void *unicorn);
    int (*peek)(void *unicorn, uint64_t address, void *bytes, size_t size);
    int (*read_register)(void *unicorn, int name, void *value);
    int (*write_register)(void *unicorn, int name, const void *value);
    int xpsr; /* Unicorn's name of the program status register */
    int (*change)(uint32_t address, uint32_t value, uint32_t why, uint64_t clock); /* the model's; true: stop */
    bt_flash *flash; /* NULL: reading it takes no time, or is not simulated */
    uint32_t (*usb)(uint32_t offset, uint32_t value, uint32_t why, uint64_t clock); /* a register's value, or: stop */
    uint8_t *usb_memory;
    uint32_t (*dma)(uint32_t address, uint32_t value, uint32_t why, uint64_t clock); /* as well */
    const bt_register *registers;
    const uint32_t *values; /* of MODELLED registers */
    const uint16_t *code;
    const uint8_t *input;
    uint8_t *output;
    uint64_t *calls; /* a ring: instructions of each call of the run function; of two cores, core 0's clock */
    double deadline; /* in seconds of the monotonic clock */
    double ticks_per_instruction;
    double first_tick;    /* of the counter, at the clock counting_from */
    uint64_t counting_from;
    uint64_t next_change; /* clock: when the model changes next */
    uint64_t call_count;
    uint32_t register_count;
    uint32_t input_bytes, input_taken;
    uint32_t output_bytes, output_room;
    uint32_t call_room, row_room;
    uint32_t code_origin, code_bytes;         /* in flash */
    uint32_t ram_code_origin, ram_code_bytes; /* copied to RAM at start */
    uint32_t run, returned; /* addresses: the run function, and where it returns to */
    uint32_t polls;         /* reads of the console's status in a row that found no input */
    uint32_t stopped;
    uint32_t console;       /* what it does now */
    uint32_t irq;           /* its interrupt, or NO_IRQ */
    uint32_t wake[2];       /* address and bits: those of a register that must all be set for it to interrupt */
    uint32_t sticky[2];     /* those that clear its interrupt, which stays until then; or 0 */
    uint32_t wakes, stuck;  /* whether it may interrupt, and whether it did and was not cleared */
    uint32_t alarm, alarm_base, alarm_irq; /* which timer that is */
    uint64_t idle_until; /* clock: how long a core that waits for input may wait for timers without input */
    bt_watchdog watchdog;
    uint32_t lines[IRQ_WORDS]; /* interrupts that devices raise now */
    uint32_t taken_irq;        /* the one that is taken, or NO_IRQ: that of USB */
    uint8_t line[256];      /* what arrives at the other end for each byte: another one if the rates differ */
    uint32_t meets[2 * MEETINGS]; /* ranges of addresses: the functions bt_meet */
    uint32_t stacks[2];           /* a range of addresses */
    uint32_t first_phase; /* of the call */
    uint32_t turn;        /* instructions, after which the other core may run, and the time limit is checked */
    uint32_t watching;    /* for races: while the run function runs */
    uint32_t closing;     /* it has returned, and what core 1 did is not yet settled */
    uint32_t dma_base[2]; /* its registers, and those of the stream from flash */
    bt_race race;
} bt_chip;

struct bt_core {
    bt_chip *chip;
    bt_core *other;    /* NULL: there is none */
    bt_block *blocks;  /* one for each halfword of code */
    uint32_t *touched; /* halfwords whose blocks have been counted for */
    bt_row *rows;      /* of the last call */
    bt_visit *visits;  /* of the last call */
    bt_block *last;    /* block that ran */
    uint64_t instructions; /* since reset */
    uint64_t idle;         /* what the clock has gone on without instructions */
    uint64_t met;          /* instructions inside of bt_meet */
    uint64_t handled;      /* instructions of interrupt handlers, which no call counts */
    uint64_t entered[3];   /* instructions, met and clock when the run function was entered */
    uint64_t taken[2];     /* instructions and met of the last call */
    uint64_t event_clock;  /* of the latest event */
    uint64_t signalled[2]; /* the clock on arrival at the last two meetings */
    uint64_t next_look;    /* at the clock, and for the other core */
    uint64_t row_count;    /* those that found no room included */
    uint64_t visit_count;  /* as well */
    bt_fills fills[VIEWS]; /* since the last visit */
    uint32_t signalled_phase[2];
    uint32_t number;
    uint32_t home[4];       /* two ranges of addresses: the run function and the part of it that calls the layers */
    uint32_t running;       /* between run and returned */
    uint32_t at_home, site; /* of the last block */
    uint32_t last_end;
    uint32_t touched_count;
    uint32_t phase; /* how often it has entered bt_meet */
    uint32_t meeting; /* whether it is inside */
    uint32_t pc;      /* of the last block */
    uint32_t event, asleep, halted;
    bt_alarm alarm;
    uint32_t dozing; /* after WFI */
    uint32_t handling; /* an interrupt */
    uint32_t masked;   /* interrupts are, for one more block */
    uint32_t enabled[IRQ_WORDS], pending[IRQ_WORDS]; /* interrupts */
    uint32_t mail[MAIL_ROOM], mail_count; /* words that the other core sent */
    uint32_t kept[KEPT_ROOM];
};

/* A range of registers that is mapped for a core: Unicorn gives offsets from its origin. */
typedef struct {
    bt_core *core;
    uint64_t origin;
} bt_range;

/* A bank of RAM as one core sees it; its bytes are shared. */
typedef struct {
    bt_core *core;
    bt_byte *bytes;
    uint64_t origin;
} bt_bank;

static inline void stop(bt_chip *m, void *unicorn, uint32_t why)
{
    m->stopped = why;
    m->stop(unicorn);
}

/* Unicorn stores the state of an IT block before it calls a hook of memory, and the code that it made for the block
 * relies on that being zero: the next block would begin with conditional instructions. Each hook of memory calls this. */
static inline void clear_it_state(const bt_chip *m, void *unicorn)
{
    const uint32_t it_state = 0x0600fc00u;
    uint32_t xpsr = 0;
    m->read_register(unicorn, m->xpsr, &xpsr);
    if ((xpsr & it_state) == 0)
        return;
    xpsr &= ~it_state;
    m->write_register(unicorn, m->xpsr, &xpsr);
}

static inline uint64_t clock_of(const bt_core *c)
{
    return c->instructions + c->idle;
}

/* Without what handlers took. */
static inline uint64_t own_instructions(const bt_core *c)
{
    return c->instructions - c->handled;
}

/* Whether there is an interrupt to be taken. */
static inline int is_due(const bt_core *c)
{
    const uint32_t irq = c->chip->taken_irq;
    return irq != NO_IRQ && !c->handling && c->enabled[irq / 32] & c->pending[irq / 32] & 1u << irq % 32;
}

static inline void wait_until(bt_core *c, uint64_t clock)
{
    if (clock_of(c) < clock)
        c->idle = clock - c->instructions;
}

static inline int can_run(const bt_core *c)
{
    return c != NULL && !c->halted && (!c->asleep || c->event);
}

/* interrupts.c */
void look_at_lines(bt_core *c);
void tell_console(bt_core *c, uint32_t address, uint32_t value);
uint32_t read_nvic(bt_core *c, uint32_t offset);
void write_nvic(bt_core *c, uint32_t offset, uint32_t value);
uint32_t bt_doze(bt_core *c);

/* alarm.c */
void look_at_alarm(bt_core *c);
void tell_alarm(bt_core *c, uint32_t address, uint32_t value);
int ask_alarm(bt_core *c, uint32_t address, uint32_t *value);

/* watchdog.c */
void tell_watchdog(bt_core *c, uint32_t address, uint32_t value);
int ask_watchdog(const bt_core *c, uint32_t address, uint32_t *value);

/* registers.c */
uint32_t ticks(const bt_core *c);

/* flash.c */
void fetch(bt_core *c, uint32_t pc, uint32_t bytes);
void begin_visits(bt_core *c);
void write_visit(bt_core *c);

/* cores.c */
void look_for_meeting(bt_core *c, uint32_t pc);
uint32_t mail_status(const bt_core *c);
void bt_signal(bt_core *c);
int bt_wait(bt_core *c);
uint32_t bt_take_mail(bt_core *c);
void bt_send_mail(const bt_core *c, uint32_t word);

#endif
