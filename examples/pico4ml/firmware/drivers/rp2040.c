/* See rp2040.h. Section numbers: RP2040 datasheet. */
#include "rp2040.h"

#define RESETS 0x4000c000u /* 2.14 */
#define GPIO_CTRL(pin) BT_REG(0x40014000u + 8u * (pin) + 4u)
#define PAD(pin) BT_REG(0x4001c000u + 4u * (pin) + 4u)
#define SIO(offset) BT_REG(0xd0000000u + (offset)) /* 2.3.1 */

#define CHANNEL(n, offset) BT_REG(0x50000000u + 0x40u * (n) + (offset)) /* 2.5 */
#define DMA_INTR BT_REG(0x50000400u)
#define DMA_INTE1 (0x50000414u)
#define DMA_ABORT BT_REG(0x50000444u)
#define CTRL_ENABLE (1u << 0)
#define CTRL_SIZE(s) ((s) << 2)
#define CTRL_INCREMENT_READ (1u << 4)
#define CTRL_INCREMENT_WRITE (1u << 5)
#define CTRL_CHAIN_TO(n) ((n) << 11) /* to itself: to none */
#define CTRL_REQUEST(dreq) ((dreq) << 15)
#define CTRL_BUSY (1u << 24)

#define TIMER_ALARM1 BT_REG(BT_COUNTER_BASE + 0x14u) /* 4.6 */
#define TIMER_ARMED BT_REG(BT_COUNTER_BASE + 0x20u)
#define TIMER_INTR BT_REG(BT_COUNTER_BASE + 0x34u)
#define TIMER_INTE_SET BT_REG(BT_COUNTER_BASE + 0x38u + ATOMIC_SET)
#define ALARM1 (1u << 1)
#define IRQS ((1u << 1) | (1u << 12)) /* of the timer's alarm 1 and of DMA's second line */
#define NVIC_ISER BT_REG(0xe000e100u)
#define NVIC_ICPR BT_REG(0xe000e280u)

void rp_restart(uint32_t blocks)
{
    BT_REG(RESETS + ATOMIC_SET) = blocks;
    BT_REG(RESETS + ATOMIC_CLEAR) = blocks;
    bt_wait(RESETS + 8u, blocks, blocks);
}

void rp_pin(uint32_t pin, uint32_t function, uint32_t pad)
{
    PAD(pin) = pad;
    GPIO_CTRL(pin) = function;
}

void rp_output(uint32_t pin, int high)
{
    SIO(high ? 0x14u : 0x18u) = 1u << pin;
    SIO(0x24u) = 1u << pin;
}

void rp_input(uint32_t pin)
{
    SIO(0x28u) = 1u << pin;
}

int rp_level(uint32_t pin)
{
    return (SIO(0x04u) >> pin & 1u) != 0;
}

static void begin(uint32_t channel, uint32_t from, uint32_t to, uint32_t count, uint32_t how)
{
    DMA_INTR = 1u << channel;
    CHANNEL(channel, 0x0u) = from;
    CHANNEL(channel, 0x4u) = to;
    CHANNEL(channel, 0x8u) = count;
    BT_REG(DMA_INTE1 + ATOMIC_SET) = 1u << channel;
    CHANNEL(channel, 0xcu) = how | CTRL_CHAIN_TO(channel) | CTRL_ENABLE;
}

void dma_receive(uint32_t channel, uint32_t dreq, uint32_t from, void *to, uint32_t count, uint32_t size)
{
    const uint32_t how = CTRL_REQUEST(dreq) | CTRL_INCREMENT_WRITE | CTRL_SIZE(size);
    begin(channel, from, (uint32_t)(uintptr_t)to, count, how);
}

void dma_send(uint32_t channel, uint32_t dreq, const void *from, uint32_t to, uint32_t count, uint32_t size)
{
    const uint32_t how = CTRL_REQUEST(dreq) | CTRL_INCREMENT_READ | CTRL_SIZE(size);
    begin(channel, (uint32_t)(uintptr_t)from, to, count, how);
}

int dma_busy(uint32_t channel)
{
    return (CHANNEL(channel, 0xcu) & CTRL_BUSY) != 0;
}

/* RP2040-E13: a channel that is stopped may tell that it has ended, so nobody listens. */
void dma_stop(uint32_t channel)
{
    BT_REG(DMA_INTE1 + ATOMIC_CLEAR) = 1u << channel;
    DMA_ABORT = 1u << channel;
    bt_wait(0x5000000cu + 0x40u * channel, CTRL_BUSY, 0);
    DMA_INTR = 1u << channel;
}

void rest_init(void)
{
    BT_REG(RESETS + ATOMIC_CLEAR) = BLOCK_DMA; /* the other core may use it, too */
    bt_wait(RESETS + 8u, BLOCK_DMA, BLOCK_DMA);
    __asm__ volatile("cpsid i" : : : "memory");
    TIMER_INTE_SET = ALARM1;
    NVIC_ICPR = IRQS;
    NVIC_ISER = IRQS;
}

/* Until DMA has ended or it is that late. An interrupt that is pending already ends sleep at once. */
static void rest_until(uint32_t deadline)
{
    TIMER_ALARM1 = deadline;
    if ((int32_t)(deadline - bt_counter_read()) > 0) { /* else it rings in an hour */
        __asm__ volatile("wfi" : : : "memory");
    }
    TIMER_ARMED = ALARM1;
}

static void forget(uint32_t channels)
{
    DMA_INTR = channels;
    TIMER_INTR = ALARM1;
    NVIC_ICPR = IRQS;
}

void pause_us(uint32_t us)
{
    const uint32_t deadline = bt_counter_read() + us;
    do {
        forget(1u << DMA_CAMERA | 1u << DMA_DISPLAY);
        rest_until(deadline);
    } while ((int32_t)(deadline - bt_counter_read()) > 0);
}

int dma_wait(uint32_t channel, uint32_t us)
{
    const uint32_t deadline = bt_counter_read() + us;
    for (;;) {
        forget(1u << DMA_CAMERA | 1u << DMA_DISPLAY); /* before the look: what ends after it wakes */
        if (!dma_busy(channel)) {
            return 1;
        }
        if ((int32_t)(deadline - bt_counter_read()) <= 0) {
            return 0;
        }
        rest_until(deadline);
    }
}
