#include "bt_runtime.h"
#include "model.h"

static const BT_FLASH char name[] = "dummy";
static const BT_FLASH bt_buffer inputs[] = {{dummy_arena, 32}};
static const BT_FLASH bt_buffer outputs[] = {{dummy_arena + 8, 32}};

const BT_FLASH bt_model bt_the_model = {
    .name = name,
    .inputs = inputs,
    .outputs = outputs,
    .input_count = 1,
    .output_count = 1,
};

void bt_model_reset(void)
{
}

void bt_model_call(void)
{
    static volatile int kept;
    kept = dummy_unrelated(kept);
    dummy_run(dummy_arena, dummy_arena + 8, 3);
    __asm volatile(".global bt_model_returned\nbt_model_returned:" ::: "memory");
}
