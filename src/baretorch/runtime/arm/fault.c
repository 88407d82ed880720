/* A fault ends the program with a report in words, from "FAULT: " to "END OF FAULT". */
#include "bt_board.h"
#include "bt_image.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define TEXT_OF(macro) TEXT(macro)
#define TEXT(tokens) #tokens

/* What the core pushed when it took the exception. */
typedef struct {
    uint32_t r0, r1, r2, r3, r12, lr, pc, psr;
} frame;

void bt_fault_entry(void);
void bt_fault(const frame *at, uint32_t exc_return);

/* Passes the frame on, on a stack that works: a stack pointer out of bounds starts again at the top. */
__attribute__((naked)) void bt_fault_entry(void)
{
    __asm__ volatile(
#if __ARM_ARCH >= 8
        "movs r0, #0\n\t"
        "msr msplim, r0\n\t"
#endif
        "mrs r0, msp\n\t"
        "mov r1, lr\n\t"
#ifdef BT_CORES
        "ldr r2, =" TEXT_OF(BT_CORES_BASE) "\n\t"
        "ldr r2, [r2]\n\t"
        "cmp r2, #0\n\t"
        "beq 3f\n\t"
        "ldr r2, =bt_core1_stack_limit\n\t"
        "ldr r3, =bt_core1_stack_top\n\t"
        "b 4f\n"
        "3:\n\t"
#endif
        "ldr r2, =bt_stack_limit\n\t"
        "ldr r3, =bt_stack_top\n"
        "4:\n\t"
        "cmp r0, r2\n\t"
        "blo 1f\n\t"
        "cmp r0, r3\n\t"
        "blo 2f\n"
        "1:\n\t"
        "msr msp, r3\n"
        "2:\n\t"
        "bl bt_fault\n\t"
        ".ltorg");
}

static void print_register(const char *name, uint32_t value)
{
    bt_print(name);
    bt_print_hex(value);
}

static const char *exception_name(uint32_t number)
{
    static const char *const names[16] = {
        [2] = "NMI",        [3] = "HardFault",    [4] = "MemManage", [5] = "BusFault", [6] = "UsageFault",
        [7] = "SecureFault", [11] = "SVCall", [12] = "DebugMonitor", [14] = "PendSV", [15] = "SysTick",
    };
    return number < 16 && names[number] != 0 ? names[number] : "an interrupt that was never enabled";
}

#if __ARM_ARCH >= 7
#define CFSR 0xe000ed28u
#define HFSR 0xe000ed2cu
#define MMFAR 0xe000ed34u
#define BFAR 0xe000ed38u

#define CFSR_MMARVALID (1u << 7)
#define CFSR_BFARVALID (1u << 15)
#define CFSR_STKOF (1u << 20)
#define HFSR_VECTTBL (1u << 1)

static const struct {
    uint32_t bit;
    const char *text;
} causes[] = {
    {1u << 0, "execution of memory that holds no code"},
    {1u << 1, "access that memory protection forbids"},
    {1u << 3, "access that memory protection forbids, while returning from an exception"},
    {1u << 4, "access that memory protection forbids, while entering an exception"},
    {1u << 5, "access that memory protection forbids, while saving FPU registers"},
    {1u << 8, "execution at an address where there is no memory"},
    {1u << 9, "access to an address where nothing answers"},
    {1u << 10, "write, some instructions before pc, to an address where nothing answers"},
    {1u << 11, "stack outside memory while returning from an exception"},
    {1u << 12, "stack outside memory while entering an exception"},
    {1u << 13, "stack outside memory while saving FPU registers"},
    {1u << 16, "undefined instruction"},
    {1u << 17, "jump to an even address, which would leave Thumb state"},
    {1u << 18, "invalid return from an exception"},
    {1u << 19, "FPU or coprocessor instruction while that is off"},
    {CFSR_STKOF, "stack overflow"},
    {1u << 24, "unaligned access"},
    {1u << 25, "division by zero"},
};

static void print_cause(uint32_t exception)
{
    const uint32_t cfsr = BT_REG(CFSR);
    const uint32_t hfsr = BT_REG(HFSR);
    const char *text = (hfsr & HFSR_VECTTBL) != 0 ? "unreadable vector table" : exception_name(exception);
    for (unsigned i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        if ((cfsr & causes[i].bit) != 0) {
            text = causes[i].text;
            break;
        }
    }
    bt_print(text);
    bt_print("\n");
    if ((cfsr & CFSR_MMARVALID) != 0) {
        print_register("address ", BT_REG(MMFAR));
        bt_print("\n");
    } else if ((cfsr & CFSR_BFARVALID) != 0) {
        print_register("address ", BT_REG(BFAR));
        bt_print("\n");
    }
    print_register("cfsr ", cfsr);
    print_register(" hfsr ", hfsr);
    bt_print("\n");
}
#else
static void print_cause(uint32_t exception)
{
    bt_print(exception_name(exception));
    bt_print(" (Armv6-M does not record the cause)\n");
}
#endif

/* The stack pointer before the exception: above the frame, the FPU's part of it, and the alignment word. */
static uintptr_t interrupted_sp(const frame *at, uint32_t exc_return)
{
    const uint32_t fpu_words = (exc_return & (1u << 4)) == 0 ? 18 : 0;
    const uint32_t padding = (at->psr & (1u << 9)) != 0 ? 1 : 0;
    return (uintptr_t)(at + 1) + 4u * (fpu_words + padding);
}

static void print_registers(const frame *at, uint32_t exc_return)
{
    print_register("pc ", at->pc);
    print_register(" lr ", at->lr);
    print_register(" psr ", at->psr);
    print_register("\nr0 ", at->r0);
    print_register(" r1 ", at->r1);
    print_register(" r2 ", at->r2);
    print_register(" r3 ", at->r3);
    print_register(" r12 ", at->r12);
    print_register(" sp ", (uint32_t)interrupted_sp(at, exc_return));
    bt_print("\n");
}

/* Prints values on the stack that may be return addresses. With the ELF file they show which layer ran. */
static void print_callers(const uint32_t *sp)
{
    uint32_t found = 0;
    bt_print("called from");
    for (; sp < bt_stack_top && found < 8u; sp++) {
        if ((*sp & 1u) != 0 && *sp - BT_CODE_BASE < BT_CODE_BYTES) {
            print_register(" ", *sp);
            found++;
        }
    }
    bt_print("\n");
}

/* Where the stack of the core that stopped ends, and in images that use two cores, which one that is. */
static const uint32_t *which_core(void)
{
#ifdef BT_CORES
    if (BT_REG(BT_CORES_BASE) != 0) {
        bt_print("core 1: ");
        return bt_core1_stack_limit;
    }
    bt_print("core 0: ");
#endif
    return bt_stack_limit;
}

void bt_fault(const frame *at, uint32_t exc_return)
{
    uint32_t exception;
    __asm__ volatile("mrs %0, ipsr" : "=r"(exception));
    bt_print("\nFAULT: ");
    const uint32_t *limit = which_core();
    print_cause(exception);
    if ((uintptr_t)at >= (uintptr_t)bt_data_start && (uintptr_t)(at + 1) <= (uintptr_t)bt_stack_top) {
        print_registers(at, exc_return);
        print_callers((const uint32_t *)interrupted_sp(at, exc_return));
    } else {
        print_register("registers lost: the stack pointer is outside RAM, ", (uint32_t)(uintptr_t)at);
        bt_print("\n");
    }
    if ((uintptr_t)at < (uintptr_t)limit) {
        print_register("the stack has overflowed its limit ", (uint32_t)(uintptr_t)limit);
        bt_print("\n");
    }
    bt_print("END OF FAULT\n");
    for (;;) {
#ifdef BT_USB_IRQ
        bt_console_rest();
#else
        __asm__ volatile("wfi");
#endif
    }
}
