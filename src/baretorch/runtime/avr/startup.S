/* AVR from reset, at the start of flash. Only the counter's interrupt is ever enabled; vectors after it are code. */
#include "bt_board.h"

#define SREG 0x3f
#define SPL 0x3d
#define SPH 0x3e
#define RAMPZ 0x3b

    .section .vectors, "ax", @progbits
    jmp bt_reset
    .rept BT_COUNTER_IRQ - 1
    jmp bt_unexpected
    .endr
    jmp bt_counter_interrupt

    .section .text.bt_reset, "ax", @progbits
    .globl bt_reset
    .type bt_reset, @function
bt_reset:
    clr r1
    out SREG, r1
    ldi r16, lo8(bt_stack_top - 1)  /* where the next byte goes */
    out SPL, r16
    ldi r16, hi8(bt_stack_top - 1)
    out SPH, r16

    ldi r30, lo8(bt_data_load)      /* .data; all that LPM reads is in the first 64 KB */
    ldi r31, hi8(bt_data_load)
    ldi r26, lo8(bt_data_start)
    ldi r27, hi8(bt_data_start)
    ldi r16, lo8(bt_data_end)
    ldi r17, hi8(bt_data_end)
    rjmp 2f
1:  lpm r0, Z+
    st X+, r0
2:  cp r26, r16
    cpc r27, r17
    brne 1b

    ldi r26, lo8(bt_bss_start)
    ldi r27, hi8(bt_bss_start)
    ldi r16, lo8(bt_bss_end)
    ldi r17, hi8(bt_bss_end)
    rjmp 4f
3:  st X+, r1
4:  cp r26, r16
    cpc r27, r17
    brne 3b
    call bt_start
5:  rjmp 5b
    .size bt_reset, . - bt_reset

/* Objects that have such data refer to these by name; otherwise libgcc's would be linked. */
    .globl __do_copy_data
    .globl __do_clear_bss
    .set __do_copy_data, bt_reset
    .set __do_clear_bss, bt_reset
