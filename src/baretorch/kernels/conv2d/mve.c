/* conv2d for Arm cores with Helium (MVE). */
#include "../mve.h"
#include "rows.h"

BT_CONV2D_KERNELS(mve)
