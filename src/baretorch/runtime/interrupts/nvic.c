/* The interrupt controller of Cortex-M. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define ISER(irq) BT_REG(BT_INTERRUPTS_BASE + (irq) / 32u * 4u)
#define ICER(irq) BT_REG(BT_INTERRUPTS_BASE + 0x80u + (irq) / 32u * 4u)
#define ISPR(irq) BT_REG(BT_INTERRUPTS_BASE + 0x100u + (irq) / 32u * 4u)
#define ICPR(irq) BT_REG(BT_INTERRUPTS_BASE + 0x180u + (irq) / 32u * 4u)
#define BIT(irq) (1u << ((irq) % 32u))

void bt_mask_interrupts(void)
{
    __asm__ volatile("cpsid i" : : : "memory");
}

/* Earlier writes to the controller, such as to disable the alarm, have taken effect by then. */
void bt_unmask_interrupts(void)
{
    __asm__ volatile("dsb\n\tcpsie i\n\tisb" : : : "memory");
}

#ifdef BT_USB_IRQ
void bt_interrupt_enable(void)
{
    ISER(BT_USB_IRQ) = BIT(BT_USB_IRQ);
}

void bt_interrupt_raise(void)
{
    ISPR(BT_USB_IRQ) = BIT(BT_USB_IRQ);
    __asm__ volatile("dsb\n\tisb" : : : "memory");
}

int bt_interrupts_blocked(void)
{
    uint32_t exception;
    __asm__ volatile("mrs %0, ipsr" : "=r"(exception));
    return exception != 0;
}

void bt_sleep(void)
{
    __asm__ volatile("dsb\n\twfi" : : : "memory");
}
#else
/* Nobody handles the interrupts of console and alarm: they are enabled while the core sleeps, and no longer pending when
 * others are let in. If one is still raised, clearing it does nothing. */
void bt_sleep(void)
{
    ISER(BT_UART_IRQ) = BIT(BT_UART_IRQ);
#ifdef BT_ALARM_IRQ
    ISER(BT_ALARM_IRQ) = BIT(BT_ALARM_IRQ);
#endif
    __asm__ volatile("dsb\n\twfi" : : : "memory");
    ICER(BT_UART_IRQ) = BIT(BT_UART_IRQ);
#ifdef BT_ALARM_IRQ
    ICER(BT_ALARM_IRQ) = BIT(BT_ALARM_IRQ);
#endif
    __asm__ volatile("dsb\n\tisb" : : : "memory");
    ICPR(BT_UART_IRQ) = BIT(BT_UART_IRQ);
#ifdef BT_ALARM_IRQ
    ICPR(BT_ALARM_IRQ) = BIT(BT_ALARM_IRQ);
#endif
}
#endif

#ifdef BT_NPU_IRQ
/* The same for the NPU and the alarm alone: what the console has got must not keep the core awake. */
void bt_npu_sleep(void);

void bt_npu_sleep(void)
{
    ISER(BT_NPU_IRQ) = BIT(BT_NPU_IRQ);
#ifdef BT_ALARM_IRQ
    ISER(BT_ALARM_IRQ) = BIT(BT_ALARM_IRQ);
#endif
    __asm__ volatile("dsb\n\twfi" : : : "memory");
    ICER(BT_NPU_IRQ) = BIT(BT_NPU_IRQ);
#ifdef BT_ALARM_IRQ
    ICER(BT_ALARM_IRQ) = BIT(BT_ALARM_IRQ);
#endif
    __asm__ volatile("dsb\n\tisb" : : : "memory");
    ICPR(BT_NPU_IRQ) = BIT(BT_NPU_IRQ);
#ifdef BT_ALARM_IRQ
    ICPR(BT_ALARM_IRQ) = BIT(BT_ALARM_IRQ);
#endif
}
#endif
