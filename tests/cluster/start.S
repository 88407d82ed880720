/* All cores start together, each with a stack of its own. */
    .section .start, "ax", @progbits
    .globl bt_reset
bt_reset:
    la sp, bt_stack_top
    csrr t0, mhartid
    slli t0, t0, 9
    sub sp, sp, t0
    j bt_start
