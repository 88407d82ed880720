/* conv2d with weights of 16 bits for Arm cores with a single-precision FPU. */
#include "../half_fpu.h"
#include "rows.h"

BT_CONV2D_HALF_KERNELS(fpu)
