/* The interface between the generated image and the hardware layer.
 *
 * An image is: startup (per architecture) -> bt_chip_init -> bt_console_init -> bt_serve.
 * Values of the board (BT_*) come from its TOML through the generated header bt_board.h. */
#ifndef BT_RUNTIME_H
#define BT_RUNTIME_H

#include <stdint.h>

#include "bt.h"

/* A text for people, where constants are. */
#if defined(__AVR__)
#define BT_TEXT(text) (__extension__({ static const BT_FLASH char bt_text[] = text; &bt_text[0]; }))
#else
#define BT_TEXT(text) text
#endif

/* chip/<init>.c: stops what may still write to memory since before the start; nothing is there yet. */
void bt_chip_quiet(void);

/* chip/<init>.c: clocks, resets, pins; everything that must happen before the console works. If a clock does not
 * start, the chip stays on its internal oscillator, and bt_chip_missing names the clock in words; else it is NULL. */
void bt_chip_init(void);
#ifdef BT_FALLBACK_UART_HZ
__attribute__((pure)) const char *bt_chip_missing(void);
void bt_report_missing(void); /* wait.c */
#else
#define bt_chip_missing() ((const char *)0)
#define bt_report_missing() ((void)0)
#define BT_FALLBACK_UART_HZ BT_UART_CLOCK_HZ
#define BT_FALLBACK_COUNTER_HZ BT_COUNTER_HZ
#define BT_FALLBACK_ALARM_HZ BT_ALARM_HZ
#endif

/* boot/qmi.c, for the RP2350: reads flash as fast as that can be. */
void bt_flash_fast(void);

/* wait.c: until the masked bits of a register are `value`; 0 if that takes too long. */
int bt_wait(uint32_t address, uint32_t mask, uint32_t value);

/* uart/<driver>.c, eight bits, no parity; or usb/<driver>.c. */
void bt_console_init(void);
void bt_console_put(uint8_t byte);
int bt_console_ready(void);    /* whether a byte has come; if not, the next one ends bt_sleep */
uint8_t bt_console_take(void); /* the byte that has come */

/* console.c: waits for a byte, asleep; the second with a limit in milliseconds, and returns whether one arrived. */
uint8_t bt_console_get(void);
int bt_console_get_soon(uint8_t *byte, uint32_t ms);
void bt_nap(void); /* sleeps once with interrupts masked, lets in what woke it, and feeds the watchdog */

/* interrupts/<driver>.c: sleep ends when an interrupt is pending, also one that arrived between the check and the
 * sleep, because interrupts are masked. Chips whose console has none stay awake. */
#if defined(BT_UART_IRQ) || defined(BT_USB_IRQ)
void bt_mask_interrupts(void);
void bt_unmask_interrupts(void);
void bt_sleep(void);
#else
#define bt_mask_interrupts() ((void)0)
#define bt_unmask_interrupts() ((void)0)
#define bt_sleep() ((void)0)
#endif

/* alarm/<driver>.c: rings after a number of milliseconds, or a little later. It ends bt_sleep if requested. Chips without
 * one (BT_ALARM_HZ) wait without a limit. */
#ifdef BT_ALARM_HZ
#define BT_ALARM_PER_MS ((bt_chip_missing() ? BT_FALLBACK_ALARM_HZ : BT_ALARM_HZ) / 1000u) /* what it counts */
void bt_alarm_start(uint32_t ms);
void bt_alarm_wakes(int on);
int bt_alarm_rang(void);
void bt_alarm_stop(void);
#else
#define bt_alarm_start(ms) ((void)(ms))
#define bt_alarm_wakes(on) ((void)0)
#define bt_alarm_rang() 0
#define bt_alarm_stop() ((void)0)
#endif

/* With USB as the console, whose interrupt is handled. */
#ifdef BT_USB_IRQ
/* usb/<driver>.c */
void bt_usb_interrupt(void);
void bt_console_rest(void); /* for loops that wait with interrupts masked, also by a fault: what was put leaves */

/* interrupts/<driver>.c */
void bt_interrupt_enable(void);
void bt_interrupt_raise(void);
int bt_interrupts_blocked(void); /* by a fault */

/* chip/<init>.c */
int bt_usb_start(void);     /* its clock, and its controller out of reset; 0 if that fails */
int bt_usb_can_abort(void); /* whether the controller returns buffers on request */
int bt_usb_sends_early(void); /* whether bulk IN buffers must be handed over early in a frame */
uint32_t bt_usb_digit(uint32_t n); /* of the 16 hexadecimal ones of a number that no other chip has; all equal: none */
void bt_usb_after_reset(void);
__attribute__((noreturn)) void bt_usb_boot_loader(void);
#endif

/* watchdog/<driver>.c, in images that have one (BT_WATCHDOG_MS): it restarts the chip if it is not fed for so long.
 * Whoever moves a byte or waits for one feeds it, a model that runs does not. */
#ifdef BT_WATCHDOG_MS
void bt_watchdog_start(void);
void bt_watchdog_feed(void);
__attribute__((pure)) int bt_watchdog_bit(void); /* whether it has restarted the chip; call it after the start */
#else
#define bt_watchdog_start() ((void)0)
#define bt_watchdog_feed() ((void)0)
#define bt_watchdog_bit() 0
#endif

/* counter/<driver>.c: counts up, wraps at 2^32. */
void bt_counter_init(void);
uint32_t bt_counter_read(void);

/* stack.c: the stack is painted at start-up; the largest depth ever reached, in bytes, of all cores together. */
uint32_t bt_stack_peak(void);

/* text.c: for messages to people. */
void bt_print(const BT_FLASH char *text);
void bt_print_hex(uint32_t value);

/* serve.c: replies to the host's frames forever. */
__attribute__((noreturn)) void bt_serve(void);

/* An application of the user's own, instead of that: for ever, too. */
void bt_main(void);

/* glue.c, generated with the model: the addresses of its inputs and outputs, and one call. */
typedef struct {
    void *data;
    uint32_t bytes;
} bt_buffer;

typedef struct {
    const BT_FLASH char *name;
    const BT_FLASH bt_buffer *inputs;
    const BT_FLASH bt_buffer *outputs;
    uint8_t input_count;
    uint8_t output_count;
} bt_model;

extern const BT_FLASH bt_model bt_the_model;
void bt_model_call(void);
void bt_model_reset(void); /* reset the state that it keeps between calls */
void bt_core1_main(void);  /* in images that use two cores: what core 1 does; an application may leave it out */
void bt_core_main(uint32_t core); /* the same of the cores 1, 2 … of a cluster */
/* with BT_CHECK_INPUTS: the name of an input that is not finite, or NULL */
const BT_FLASH char *bt_model_wrong_input(void);

#endif
