/* RISC-V from reset, at the start of the image: hart 0 runs; the others sleep, or wait to help with the model. */
#include "bt_board.h"

    .section .start, "ax", @progbits
    .globl bt_reset
bt_reset:
    csrr t0, mhartid
#ifdef BT_TEAM
    beqz t0, 1f
    j bt_team_reset
1:
#else
    bnez t0, sleep
#endif
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    la sp, bt_stack_top
    la t0, bt_trap_entry
    csrw mtvec, t0
#ifdef __riscv_flen
    li t0, 1 << 13              /* mstatus.FS: the FPU is on, its registers in their initial state */
    csrs mstatus, t0
    csrw fcsr, zero
#endif
    call bt_start
sleep:
    wfi
    j sleep

/* Stores the registers that bt_trap prints, on a stack that works: a stack pointer out of bounds is set to
 * the top. Nothing is restored. */
    .section .text.bt_trap_entry, "ax", @progbits
    .balign 4
    .globl bt_trap_entry
bt_trap_entry:
    csrw mscratch, sp
    sw t0, -4(gp)               /* any word of .data will do: the program has ended */
    la t0, bt_stack_limit
    bltu sp, t0, 1f
    la t0, bt_stack_top
    bltu sp, t0, 2f
1:  la sp, bt_stack_top
2:  lw t0, -4(gp)
    addi sp, sp, -48
    sw ra, 0(sp)
    csrr ra, mscratch
    sw ra, 4(sp)
    sw a0, 8(sp)
    sw a1, 12(sp)
    sw a2, 16(sp)
    sw a3, 20(sp)
    sw a4, 24(sp)
    sw a5, 28(sp)
    sw t0, 32(sp)
    mv a0, sp
    call bt_trap
