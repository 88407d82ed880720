/* Depthwise qconv2d for Arm cores with Helium; see depthwise_mve.h. */
#include "depthwise_mve.h"

/* scratch: kernel_h rows of the image with its padding, and 16 bytes after them */
BT_KERNEL void bt_qconv2d_depthwise_mve(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y,
                                        void *scratch)
{
    bt_qconv2d_depthwise_shared_mve(p, x, constants, y, (int8_t *)scratch);
}
