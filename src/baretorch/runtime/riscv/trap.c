/* A trap ends the program with a report in words, from "FAULT: " to "END OF FAULT". */
#include "bt_board.h"
#include "bt_image.h"
#include "bt_runtime.h"

/* As bt_trap_entry stores them. */
typedef struct {
    uint32_t ra, sp, a0, a1, a2, a3, a4, a5, t0;
} registers;

void bt_trap(const registers *r);

static void print_register(const char *name, uint32_t value)
{
    bt_print(name);
    bt_print_hex(value);
}

/* Prints values on the stack that may be return addresses. With the ELF file they show which layer ran. */
static void print_callers(const uint32_t *sp)
{
    uint32_t found = 0;
    bt_print("called from");
    for (; sp >= bt_stack_limit && sp < bt_stack_top && found < 8u; sp++) {
        if ((*sp & 1u) == 0 && *sp - BT_CODE_BASE < BT_CODE_BYTES) {
            print_register(" ", *sp);
            found++;
        }
    }
    bt_print("\n");
}

static const char *cause_text(uint32_t cause)
{
    static const char *const causes[] = {
        [0] = "jump to an unaligned address",
        [1] = "execution at an address where there is no memory",
        [2] = "undefined instruction",
        [3] = "breakpoint",
        [4] = "unaligned read",
        [5] = "read from an address where nothing answers",
        [6] = "unaligned write",
        [7] = "write to an address where nothing answers",
        [11] = "environment call",
    };
    if ((cause >> 31) != 0) {
        return "an interrupt that was never enabled";
    }
    return cause < sizeof causes / sizeof causes[0] && causes[cause] != 0 ? causes[cause] : "unknown trap";
}

void bt_trap(const registers *r)
{
    uint32_t mcause, mepc, mtval;
    __asm__ volatile("csrr %0, mcause" : "=r"(mcause));
    __asm__ volatile("csrr %0, mepc" : "=r"(mepc));
    __asm__ volatile("csrr %0, mtval" : "=r"(mtval));
    bt_print("\nFAULT: ");
    bt_print(cause_text(mcause));
    print_register("\naddress ", mtval);
    print_register("\nmcause ", mcause);
    print_register("\npc ", mepc);
    print_register(" ra ", r->ra);
    print_register(" sp ", r->sp);
    print_register(" t0 ", r->t0);
    print_register("\na0 ", r->a0);
    print_register(" a1 ", r->a1);
    print_register(" a2 ", r->a2);
    print_register(" a3 ", r->a3);
    print_register(" a4 ", r->a4);
    print_register(" a5 ", r->a5);
    bt_print("\n");
    print_callers((const uint32_t *)(uintptr_t)(r->sp & ~3u));
    if (r->sp < (uint32_t)(uintptr_t)bt_stack_limit) {
        print_register("the stack has overflowed its limit ", (uint32_t)(uintptr_t)bt_stack_limit);
        bt_print("\n");
    }
    bt_print("END OF FAULT\n");
    for (;;) {
        __asm__ volatile("wfi");
    }
}
