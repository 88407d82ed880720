/* Starts a program on QEMU's reference machines for Arm, with newlib's semihosting as its console. */
#include <stdint.h>
#include <stdlib.h>

extern uint32_t __stack, __data_start, __data_end, __data_load, __bss_start, __bss_end;
extern void initialise_monitor_handles(void);
extern void __libc_init_array(void);
extern int main(void);

void _init(void) {}
void _fini(void) {}

static void fault(void)
{
    abort();
}

void start(void)
{
#ifdef __ARM_FP
    *(volatile uint32_t *)0xe000ed88 |= 0xfu << 20;
    __asm__ volatile("dsb\n isb");
#endif
    for (uint32_t *from = &__data_load, *to = &__data_start; to < &__data_end;)
        *to++ = *from++;
    for (uint32_t *to = &__bss_start; to < &__bss_end;)
        *to++ = 0;
    initialise_monitor_handles();
    __libc_init_array();
    exit(main());
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &__stack, (void *)start, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault,
};
