/* The block that the RP2350's boot ROM searches for in the first 4 KiB of flash: an image for its RISC-V cores, which
 * begins at bt_reset. */
    .section .image_def, "a", @progbits
    .word 0xffffded3            /* start marker */
    .word 0x11010142            /* item IMAGE_TYPE, one word: executable, RISC-V, RP2350 */
    .word 0x00000344            /* item ENTRY_POINT, three words */
    .word bt_reset
    .word bt_stack_top
    .word 0x000004ff            /* last item, after four words of items */
    .word 0x00000000            /* the next block: this one again */
    .word 0xab123579            /* end marker */
