/* Core 1 of the RP2040 and the RP2350. After reset it waits in its boot ROM for six words in the mailbox between the
 * cores (SIO's FIFOs), and returns each word when it has read it:
 *
 *     0   0   1   vector table   stack pointer   entry
 *
 * To any other word it returns 0 and begins again. If core 1 does not return the same word, core 0 begins again, too, a
 * few times. Before that core 1 is reset, because a debugger resets core 0 only, and core 1 still runs its old program. It
 * is not reset if it responds, because debuggers lose a core that is off. */
#include "bt_board.h"
#include "bt_image.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define FIFO_ST (BT_CORES_BASE + 0x50u)
#define FIFO_WR BT_REG(BT_CORES_BASE + 0x54u)
#define FIFO_RD BT_REG(BT_CORES_BASE + 0x58u)
#define FIFO_VALID (1u << 0) /* there is a word to read */
#define FIFO_READY (1u << 1) /* there is room for one */

/* The power-on state machine, which can force a core off. */
#if defined(__ARM_ARCH_6M__) /* RP2040 */
#define FRCE_OFF 0x40010004u
#define FRCE_OFF_PROC1 (1u << 16)
#else /* RP2350 */
#define FRCE_OFF 0x40018004u
#define FRCE_OFF_PROC1 (1u << 24)
#endif
#define SET 0x2000u /* aliases */
#define CLEAR 0x3000u

#define VTOR 0xe000ed08u
#define THUMB 1u
#define ATTEMPTS 8u

/* Core 1 sleeps while it waits, so that words come with an event. */
static void signal_event(void)
{
    __asm__ volatile("sev" : : : "memory");
}

/* Sends a word; true if core 1 returns the same. */
static int is_answered(uint32_t word)
{
    if (!bt_wait(FIFO_ST, FIFO_READY, FIFO_READY)) {
        return 0;
    }
    FIFO_WR = word;
    signal_event();
    return bt_wait(FIFO_ST, FIFO_VALID, FIFO_VALID) && FIFO_RD == word;
}

static void reset_core1(void)
{
    BT_REG(FRCE_OFF + SET) = FRCE_OFF_PROC1;
    bt_wait(FRCE_OFF, FRCE_OFF_PROC1, FRCE_OFF_PROC1);
    BT_REG(FRCE_OFF + CLEAR) = FRCE_OFF_PROC1;
    bt_wait(FIFO_ST, FIFO_VALID, FIFO_VALID); /* its boot ROM sends a 0 when it is there */
}

int bt_core1_start(void (*entry)(void), uint32_t *stack_top)
{
    const uint32_t words[6] = {
        0, 0, 1, BT_REG(VTOR), (uint32_t)(uintptr_t)stack_top, (uint32_t)(uintptr_t)entry | THUMB,
    };
    unsigned sent = 0;
    for (unsigned attempts = ATTEMPTS; sent < 6 && attempts > 0;) {
        if (words[sent] == 0) { /* no reply to an earlier attempt may count */
            while ((BT_REG(FIFO_ST) & FIFO_VALID) != 0) {
                (void)FIFO_RD;
            }
            signal_event(); /* it may wait for room in its FIFO */
        }
        if (is_answered(words[sent])) {
            sent++;
        } else {
            reset_core1();
            sent = 0;
            attempts--;
        }
    }
    return sent == 6;
}
