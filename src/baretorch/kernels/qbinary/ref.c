#include "qbinary.h"

#include "../elementwise/loops.h"

BT_BINARY_REF(bt_qadd_ref, bt_qadd, int8_t, int8_t, bt_qadd_one(p, v, w))
BT_BINARY_REF(bt_qmul_ref, bt_qmul, int8_t, int8_t, bt_qmul_one(p, v, w))
BT_BINARY_REF(bt_qdiv_ref, bt_qdiv, int8_t, int8_t, bt_qdiv_one(p, v, w))
BT_BINARY_REF(bt_qsquared_difference_ref, bt_qsquared_difference, int8_t, int8_t, bt_qsquared_difference_one(p, v, w))
