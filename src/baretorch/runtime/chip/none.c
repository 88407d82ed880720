/* For machines that are ready at reset. */
#include "bt_runtime.h"

void bt_chip_init(void)
{
}
