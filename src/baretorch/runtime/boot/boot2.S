/* The RP2040's second stage boot loader: the first 256 bytes of flash, of which the last four are a checksum
 * that the build fills in. The boot ROM copies it to RAM and calls it.
 *
 * It makes flash readable in the memory map, as fast as the Pico's flash allows: four bits at a time at half the system
 * clock and, after the first read, without a command (EBh in continuous mode: 20 clocks per word). For that the flash
 * chip must have its bit QE set, which is done once in its life. Then flash is read and compared with this code. If that
 * fails, the chip is read with the simplest command (03h, one bit at a time, 64 clocks per word) at a quarter of the
 * system clock.
 *
 * For USB, the unique number of the flash chip is read first (4Bh), because later flash is always being read. The reply
 * is kept with the last byte first. The number is in bytes 5 to 12 of 16, so that the three bytes of shorter replies do
 * not reach it. */
#include "bt_board.h"

    .syntax unified
    .thumb
    .section .boot2, "ax"

    .equ PADS, 0x40020000           /* the pins of the flash chip */
    .equ PADS_SCLK, 0x04
    .equ PADS_SD0, 0x08
    .equ FAST_8MA, 0x21
    .equ INPUT_4MA, 0x50            /* without Schmitt trigger, whose delay is too long here */

    .equ SSI, 0x18000000            /* the controller between the flash chip and the bus */
    .equ CTRLR0, 0x00
    .equ CTRLR1, 0x04
    .equ SSIENR, 0x08
    .equ BAUDR, 0x14
    .equ RXFLR, 0x24
    .equ SR, 0x28
    .equ DR0, 0x60
    .equ MORE, 0xf0                 /* registers that are too far for an offset */
    .equ RX_SAMPLE_DLY, 0x00
    .equ SPI_CTRLR0, 0x04

    /* CTRLR0 */
    .equ BYTES, 7 << 16                                 /* exchange bytes, one bit at a time */
    .equ READ_WORDS, 31 << 16 | 3 << 8                  /* send command and address, read words */
    .equ QUAD, 2 << 21
    /* SPI_CTRLR0 */
    .equ COMMAND_ONCE, 4 << 11 | 2 << 8 | 8 << 2 | 1    /* 8 bits of command on one line, 32 of address and mode on
                                                           four, 4 clocks of silence */
    .equ NO_COMMAND, 0xa0 << 24 | 4 << 11 | 8 << 2 | 2  /* the same without command, with this mode */
    .equ SERIAL_READ, 3 << 24 | 2 << 8 | 6 << 2         /* command 03h of 8 bits, address of 24 bits */

    .equ UNCACHED, 0x13000000
    .equ IMAGE, 0x10000100

boot2:
    ldr r3, =PADS
    movs r0, #FAST_8MA
    str r0, [r3, #PADS_SCLK]
    movs r0, #INPUT_4MA
    str r0, [r3, #PADS_SD0]
    str r0, [r3, #PADS_SD0 + 4]
    str r0, [r3, #PADS_SD0 + 8]
    str r0, [r3, #PADS_SD0 + 12]

    movs r3, #SSI >> 24
    lsls r3, #24
    movs r7, #2
    bl exchange_bytes
#ifdef BT_USB_BASE
    ldr r4, =bt_flash_answer
    movs r0, #0x4b                  /* the command; what else is sent means nothing */
ask:
    str r0, [r3, #DR0]
    subs r0, #5                     /* it is 0 after 15 bytes */
    bne ask
    bl send
#endif
    movs r0, #0x35
    bl status
    movs r6, r0
    lsrs r0, #2                     /* bit 1: QE */
    bcs quad
    movs r0, #0x05
    bl status
    movs r5, r0
    movs r0, #0x06                  /* allow a write */
    bl send
    movs r0, #0x01                  /* both status registers, with QE set and the rest as it is */
    str r0, [r3, #DR0]
    str r5, [r3, #DR0]
    adds r0, r6, #2
    bl send
    lsrs r6, r1, #5       /* polls: 200 ms; chips take at most 15 */
writing:
    subs r6, #1
    beq serial
    movs r0, #0x05
    bl status
    lsrs r0, #1                     /* bit 0: busy */
    bcs writing

quad:
    ldr r1, =QUAD | READ_WORDS
    ldr r2, =COMMAND_ONCE
    bl set_up
    movs r0, #0xeb
    str r0, [r3, #DR0]
    movs r0, #0xa0                  /* address 0, and the mode that makes the next read begin with an address */
    bl send
    ldr r2, =NO_COMMAND
    bl set_up

    adr r0, constants               /* in RAM, and the same in flash */
    ldr r1, in_flash
compare:
    lsls r7, #4                     /* 2 before: it is 0 after 7 words */
    beq start
    ldm r0!, {r5}
    ldm r1!, {r6}
    cmp r5, r6
    beq compare

serial:
    movs r7, #4
    bl exchange_bytes
    movs r0, #0xff                  /* ends continuous mode, and else means nothing */
    bl send
    ldr r1, =READ_WORDS
    ldr r2, =SERIAL_READ
    bl set_up

start:
    ldr r0, =IMAGE
    ldm r0!, {r2, r3}               /* stack pointer, reset handler, which sets the vector table */
    mov sp, r2
    bx r3

/* Set the controller up, at the system clock divided by r7. */
exchange_bytes:
    movs r1, #BYTES >> 16
    lsls r1, #16
set_up:                             /* for CTRLR0 = r1, SPI_CTRLR0 = r2 */
    movs r5, r3
    adds r5, #MORE
    movs r0, #0
    str r0, [r3, #SSIENR]           /* off while its settings change */
    str r1, [r3, #CTRLR0]
    str r0, [r3, #CTRLR1]           /* one word at a time */
    str r7, [r3, #BAUDR]
    str r2, [r5, #SPI_CTRLR0]
    movs r0, #1
    str r0, [r5, #RX_SAMPLE_DLY]    /* sample a bit one clock after its request */
    str r0, [r3, #SSIENR]
    bx lr

/* r0 = the status register that the command r0 reads. */
status:
    str r0, [r3, #DR0]
send:                               /* r0, and wait until all is sent; r0 = the last byte received, r4: all, the last first */
    str r0, [r3, #DR0]
wait:
    ldr r0, [r3, #SR]
    movs r2, #5
    ands r0, r2
    cmp r0, #4                      /* nothing more to send, and not busy */
    bne wait
take:
    ldr r0, [r3, #DR0]
    ldr r2, [r3, #RXFLR]
#ifdef BT_USB_BASE
    strb r0, [r4, r2]
#endif
    cmp r2, #0
    bne take
    bx lr

    .balign 4
constants:
in_flash:
    .word UNCACHED + constants - boot2
    .ltorg
    .org 256

#ifdef BT_USB_BASE
    .section .noinit, "aw", %nobits
    .global bt_flash_answer
bt_flash_answer:
    .space 16
#endif
