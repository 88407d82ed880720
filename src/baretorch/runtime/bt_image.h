/* The bounds that the generated linker script gives, and the functions of start-up. */
#ifndef BT_IMAGE_H
#define BT_IMAGE_H

#include <stdint.h>

/* What is copied from flash to RAM at start: initialised data, and weights of which RAM is asked. */
typedef struct {
    const uint32_t *from;
    uint32_t *to, *end;
} bt_copy;
extern const bt_copy bt_copies[], bt_copies_end[];

extern uint32_t bt_data_start[];
extern uint32_t bt_bss_start[], bt_bss_end[];
extern uint32_t bt_stack_limit[], bt_stack_top[]; /* the stack grows from top down to limit */

/* start.c: makes C's world, then never returns. Called once, on the stack, with the FPU on. */
void bt_start(void);

/* stack.c */
void bt_stack_paint(void);

#endif
