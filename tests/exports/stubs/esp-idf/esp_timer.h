#include <stdint.h>

static inline int64_t esp_timer_get_time(void)
{
    return 0;
}
