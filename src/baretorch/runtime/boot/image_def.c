/* The block that the RP2350's boot ROM searches for in the first 4 KiB of flash: an Arm image, to be run in the
 * secure state, with its vector table at the start of flash. */
#include <stdint.h>

__attribute__((section(".image_def"), used)) static const uint32_t image_def[] = {
    0xffffded3u, /* start marker */
    0x10210142u, /* item IMAGE_TYPE, one word: executable, secure, Arm, RP2350 */
    0x000001ffu, /* last item, after one word of items */
    0x00000000u, /* the next block: this one again */
    0xab123579u, /* end marker */
};
