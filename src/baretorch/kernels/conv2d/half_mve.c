/* conv2d with weights of 16 bits for Arm cores with Helium (MVE). */
#include "../half_mve.h"
#include "rows.h"

BT_CONV2D_HALF_KERNELS(mve)
