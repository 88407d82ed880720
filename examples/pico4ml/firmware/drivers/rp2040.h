/* What the drivers share of the RP2040: blocks out of reset, pins, DMA, and sleep. */
#ifndef RP2040_H
#define RP2040_H

#include <stdint.h>

#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define ATOMIC_SET 0x2000u
#define ATOMIC_CLEAR 0x3000u

/* Bits of RESETS */
#define BLOCK_DMA (1u << 2)
#define BLOCK_I2C0 (1u << 3)
#define BLOCK_PIO0 (1u << 10)
#define BLOCK_PWM (1u << 14)
#define BLOCK_SPI1 (1u << 17)

/* Functions of pins, and what their pads do: input enabled, 4 mA, Schmitt trigger, pulled */
#define PIN_SPI 1u
#define PIN_I2C 3u
#define PIN_PWM 4u
#define PIN_SIO 5u
#define PIN_PIO0 6u
#define PAD_PULL_DOWN 0x56u
#define PAD_PULL_UP 0x5au

/* The sources of DMA's requests, and its channels that are ours */
#define DREQ_PIO0_RX0 4u
#define DREQ_SPI1_TX 18u
#define DMA_CAMERA 10u
#define DMA_DISPLAY 11u
#define DMA_BYTES 0u
#define DMA_HALFWORDS 1u

void rp_restart(uint32_t blocks); /* through reset, to what they are at power-up */
void rp_pin(uint32_t pin, uint32_t function, uint32_t pad);

/* Pins of function SIO */
void rp_output(uint32_t pin, int high);
void rp_input(uint32_t pin);
int rp_level(uint32_t pin);

/* From a register to memory, or the other way. */
void dma_receive(uint32_t channel, uint32_t dreq, uint32_t from, void *to, uint32_t count, uint32_t size);
void dma_send(uint32_t channel, uint32_t dreq, const void *from, uint32_t to, uint32_t count, uint32_t size);
int dma_busy(uint32_t channel);
void dma_stop(uint32_t channel);

/* Sleep, for one core: rest_init has it wake when DMA has ended, and masks its interrupts, which nobody takes. Times are
 * microseconds of bt_counter_read. */
void rest_init(void);
void pause_us(uint32_t us);
int dma_wait(uint32_t channel, uint32_t us); /* until it has ended; 0 if that takes longer */

#endif
