/* The RP2040's second stage boot loader: the first 256 bytes of flash, of which the last four are a checksum
 * that the build fills in. The boot ROM copies it to RAM and calls it. It makes flash readable at its place in
 * the memory map, with the plainest command there is (03h, serial), and starts the image behind itself. */

    .syntax unified
    .thumb
    .section .boot2, "ax"

    .equ SSI, 0x18000000            /* the controller between the flash chip and the bus */
    .equ SSI_CTRLR0, 0x00
    .equ SSI_CTRLR1, 0x04
    .equ SSI_SSIENR, 0x08
    .equ SSI_BAUDR, 0x14
    .equ CTRLR0, (31 << 16) | (3 << 8)              /* 32-bit words, read after sending command and address */
    .equ SPI_CTRLR0, (3 << 24) | (2 << 8) | (6 << 2) /* command 03h of 8 bits, address of 24 bits */
    .equ IMAGE, 0x10000100
    .equ VTOR, 0xe000ed08

    ldr r0, =SSI
    movs r1, #0
    str r1, [r0, #SSI_SSIENR]       /* off while its settings change */
    movs r2, #4
    str r2, [r0, #SSI_BAUDR]        /* a quarter of the system clock */
    ldr r2, =CTRLR0
    str r2, [r0, #SSI_CTRLR0]
    str r1, [r0, #SSI_CTRLR1]
    ldr r2, =SPI_CTRLR0
    ldr r3, =SSI + 0xf4
    str r2, [r3]
    movs r2, #1
    str r2, [r0, #SSI_SSIENR]

    ldr r0, =IMAGE
    ldr r1, =VTOR
    str r0, [r1]
    ldm r0!, {r2, r3}               /* stack pointer, reset handler */
    msr msp, r2
    bx r3

    .ltorg
    .org 256
