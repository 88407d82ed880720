/* The start of a cluster's cores other than core 0, with their number in t0. Each fills its own stack with the pattern that
 * stack.c searches for. */

    .section .text.bt_team_reset, "ax", @progbits
    .globl bt_team_reset
bt_team_reset:
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    la sp, bt_team_stacks
    lui t2, %hi(bt_team_stack_bytes)
    addi t2, t2, %lo(bt_team_stack_bytes)
    mv a0, t0
1:  mv t1, sp                   /* the limit of its stack */
    add sp, sp, t2
    addi t0, t0, -1
    bnez t0, 1b
    li t0, 0xb7b7b7b7
2:  sw t0, 0(t1)
    addi t1, t1, 4
    bne t1, sp, 2b
    la t0, bt_trap_entry
    csrw mtvec, t0
    call bt_team_entry
3:  j 3b
