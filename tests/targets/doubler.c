/* A model of four floats that doubles them. With a first float of 1000 or more it goes wrong on purpose, and its
 * variables tell whether start-up has made C's world. */
#include "bt_runtime.h"

enum { UNDEFINED = 1001, JUMP_NOWHERE = 1002, READ_NOWHERE = 1003, OVERFLOW = 1004 };

const float bt_weights_factor[4] = {2.0f, 2.0f, 2.0f, 2.0f};

static float input[4] __attribute__((section(".bss.bt_arena.input")));
static float output[4] __attribute__((section(".bss.bt_arena.output")));
static const BT_FLASH char name[] = "doubler";
static const BT_FLASH bt_buffer inputs[] = {{input, sizeof input}};
static const BT_FLASH bt_buffer outputs[] = {{output, sizeof output}};

const BT_FLASH bt_model bt_the_model = {
    .name = name, .inputs = inputs, .outputs = outputs, .input_count = 1, .output_count = 1};

static volatile uint32_t initialised = 0x12345678u;
static volatile uint32_t zeroed;

void doubler_run(void);

static void undefined_instruction(void)
{
#if defined(__arm__)
    __asm__ volatile("udf #0");
#elif defined(__riscv)
    __asm__ volatile("unimp");
#endif
}

__attribute__((noinline)) static uint32_t dig(volatile uint32_t *above, uint32_t depth)
{
    volatile uint32_t frame[64];
    for (uint32_t i = 0; i < 64; i++) {
        frame[i] = above[0] + i;
    }
    if (depth == 0) {
        undefined_instruction();
        return frame[1];
    }
    return dig(frame, depth - 1) + frame[2];
}

static void go_wrong(uint32_t how)
{
    volatile uint32_t seed = 0;
    if (how == UNDEFINED) {
        undefined_instruction();
    } else if (how == JUMP_NOWHERE) {
        ((void (*)(void))(uintptr_t)0xf0000001u)();
    } else if (how == READ_NOWHERE) {
        (void)*(volatile uint32_t *)(uintptr_t)0xf0000000u;
    } else if (how == OVERFLOW) {
        seed = dig(&seed, 40);
    }
}

__attribute__((noinline)) void doubler_run(void)
{
    const uint32_t how = (uint32_t)input[0];
    if (how > 1000) {
        go_wrong(how);
    }
    const int sound = initialised == 0x12345678u && zeroed == 0;
    for (int i = 0; i < 4; i++) {
        output[i] = sound ? input[i] * bt_weights_factor[i] : -1.0f;
    }
}

void bt_model_reset(void)
{
}

void bt_model_call(void)
{
    doubler_run();
    __asm__ volatile(".globl bt_model_returned\nbt_model_returned:" ::: "memory");
}
