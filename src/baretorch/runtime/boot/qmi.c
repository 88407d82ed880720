/* The RP2350 reads flash as its boot ROM found that it can: four bits at a time at a third of the system clock, and
 * every read begins with a command. This makes it half the clock, and in continuous mode without the command: 24 clocks
 * less for a line that is read. All of it runs in RAM, since flash cannot be read meanwhile.
 *
 * What flash reads as before and after is compared; if it differs, all is as it was. A chip for which the boot ROM found
 * another command stays as it is too: its bit QE is not set, or it is none for four bits. */
#include "bt_reg.h"
#include "bt_runtime.h"

#define QMI 0x400d0000u
#define DIRECT_CSR BT_REG(QMI + 0x00u)
#define DIRECT_TX BT_REG(QMI + 0x04u)
#define M0_TIMING BT_REG(QMI + 0x0cu)
#define M0_RFMT BT_REG(QMI + 0x10u)
#define M0_RCMD BT_REG(QMI + 0x14u)

#define DIRECT_CLKDIV_6 (6u << 22)
#define DIRECT_SELECT (1u << 2)
#define DIRECT_BUSY (1u << 1)
#define DIRECT_ENABLE 1u
#define TX_NOPUSH (1u << 20) /* received bytes are not needed */

#define READ_QUAD 0xebu
#define CONTINUOUS 0xa0u
#define COMMAND (1u << 12)
#define QUAD 0x000482a8u /* address, mode, 4 clocks of silence and data on four lines */
/* Half the system clock; bits are sampled two half cycles later. The chip stays selected if the next read follows within
 * 64 cycles. Otherwise it is deselected for 13 ns at 150 MHz; chips need 10. */
#define HALF_CLOCK (1u << 30 | 1u << 12 | 2u << 8 | 2u)

#define UNCACHED ((const volatile uint32_t *)0x14000000u)
#define WORDS 16u

#define IN_RAM __attribute__((section(".ramcode.bt_flash_fast"), noinline))
#ifdef __riscv
#define barrier() __asm__ volatile("fence" ::: "memory")
#else
#define barrier() __asm__ volatile("dsb" ::: "memory")
#endif

IN_RAM static void leave_continuous_mode(void);
IN_RAM void bt_flash_fast(void);

static inline __attribute__((always_inline)) void wait_until_sent(void)
{
    while (DIRECT_CSR & DIRECT_BUSY) {
    }
}

/* Eight clocks with the first line high: no mode in which a command is not expected. */
static void leave_continuous_mode(void)
{
    DIRECT_CSR = DIRECT_CLKDIV_6 | DIRECT_ENABLE;
    wait_until_sent();
    DIRECT_CSR = DIRECT_CLKDIV_6 | DIRECT_ENABLE | DIRECT_SELECT;
    DIRECT_TX = TX_NOPUSH | 0xffu;
    wait_until_sent();
    DIRECT_CSR = DIRECT_CLKDIV_6 | DIRECT_ENABLE;
    DIRECT_CSR = DIRECT_CLKDIV_6;
}

void bt_flash_fast(void)
{
    const uint32_t timing = M0_TIMING, format = M0_RFMT, command = M0_RCMD;
    uint32_t before[WORDS], differs = 0;
    if ((command & 0xffu) != READ_QUAD || format != (QUAD | COMMAND)) {
        return;
    }
    for (uint32_t i = 0; i < WORDS; i++) {
        before[i] = UNCACHED[i];
    }
    M0_TIMING = HALF_CLOCK;
    M0_RCMD = CONTINUOUS << 8 | READ_QUAD;
    barrier();
    (void)UNCACHED[0];
    M0_RFMT = QUAD;
    barrier();
    for (uint32_t i = 0; i < WORDS; i++) {
        differs |= before[i] ^ UNCACHED[i];
    }
    if (differs) {
        leave_continuous_mode();
        M0_TIMING = timing;
        M0_RCMD = command;
        M0_RFMT = format;
        barrier();
    }
}
