/* The bounds from the generated linker script, and the functions of start-up. */
#ifndef BT_IMAGE_H
#define BT_IMAGE_H

#include <stdint.h>

/* Data that is copied from flash to RAM at start-up: initialised data, and weights that are used from RAM. */
typedef struct {
    const uint32_t *from;
    uint32_t *to, *end;
} bt_copy;
extern const bt_copy bt_copies[], bt_weight_copies[], bt_copies_end[];

extern uint32_t bt_data_start[];
extern uint32_t bt_bss_start[], bt_bss_end[];
extern uint32_t bt_stack_limit[], bt_stack_top[]; /* the stack grows from top down to limit */

/* Images that use two cores (BT_CORES in bt_board.h): core 1's stack, what starts it, and where it begins. */
extern uint32_t bt_core1_stack_limit[], bt_core1_stack_top[];
int bt_core1_start(void (*entry)(void), uint32_t *stack_top); /* cores/<driver>.c; 0 if it does not respond */
void bt_core1_entry(void);                                     /* arm/core1.c */

/* Images that use several cores of a cluster (BT_TEAM in bt_board.h): the stacks of all but the first, one after
 * the other; the second name is not an address but the size of each. */
extern uint32_t bt_team_stacks[], bt_team_stack_bytes[];

/* chip/<init>.c, of chips with BT_RAM_NEEDS_POWER: before RAM can be written. */
void bt_chip_power(void);

/* start.c: makes C's world, then never returns. Called once, on the stack, with the FPU on. */
void bt_start(void);

/* stack.c */
void bt_stack_paint(void);

#endif
