/* The USB controller. Its memory is here, its registers are in the model. Writes to the first part of the memory, which
 * controls endpoints and buffers, call the model. */
#include "unicorn.h"

#include <string.h>

static int in_memory(uint64_t offset, unsigned size)
{
    return offset + size <= USB_MEMORY;
}

uint64_t bt_on_usb_read(void *unicorn, uint64_t offset, unsigned size, void *core)
{
    bt_core *c = core;
    (void)unicorn;
    uint32_t value = 0;
    if (in_memory(offset, size))
        memcpy(&value, c->chip->usb_memory + offset, size);
    else if (offset >= USB_REGISTERS)
        value = c->chip->usb((uint32_t)offset - USB_REGISTERS, 0, USB_READ, clock_of(c));
    return value;
}

void bt_on_usb_write(void *unicorn, uint64_t offset, unsigned size, uint64_t value, void *core)
{
    bt_core *c = core;
    bt_chip *m = c->chip;
    if (in_memory(offset, size)) {
        const uint32_t at = (uint32_t)offset & ~3u;
        uint32_t before;
        memcpy(&before, m->usb_memory + at, sizeof before);
        memcpy(m->usb_memory + offset, &value, size);
        if (at < USB_CONTROLS && m->usb(at, before, USB_MEMORY_WRITTEN, clock_of(c)))
            stop(m, unicorn, CHIP_CHANGED);
    } else if (offset >= USB_REGISTERS && m->usb((uint32_t)offset - USB_REGISTERS, (uint32_t)value, USB_WRITTEN, clock_of(c)))
        stop(m, unicorn, CHIP_CHANGED);
}
