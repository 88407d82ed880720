/* Digits in front of a camera. Core 1 serves camera and display and never waits for the network; core 0 makes the
 * network's input of a view of the camera, runs the network, and tells the console.
 *
 * The model takes 784 floats from 0 to 1, and gives ten probabilities. */
#include "bt_board.h"
#include "bt_runtime.h"
#include "drivers/camera.h"
#include "drivers/rp2040.h"
#include "screen.h"

#define CELL 4                   /* pixels across and down a cell of the view */
#define RETRY_US 500000u         /* until a camera that fails is tried again */
#define DISPLAY_RETRY_US 200000u /* the same for the display */
#define RATE_US 1000000u         /* over how long rates are counted */
#define DIGITS 10

/* What the cores share. Who owns the rest is told by `turn`, which each side sets to the other's. */
typedef enum { TURN_CORE1, TURN_CORE0 } whose;
static volatile whose turn;
static struct {
    uint8_t view[VIEW * VIEW]; /* from core 1 */
    uint8_t number;
    answer is; /* from core 0 */
} job;

/* Told by core 1, said by core 0. */
#define NOT_YET_KNOWN (CAMERA_NO_FRAMES + 1u)
static volatile uint32_t camera_is = NOT_YET_KNOWN; /* a camera_state */
static volatile uint32_t display_stuck, display_silent;

static const char *const on_screen[] = {"", "NO CAMERA", "I2C STUCK", "WRONG CAMERA", "NO FRAMES"};
static const char *const on_console[] = {
    "camera: frames come\n",
    "camera: nobody answers on the I2C bus\n",
    "camera: the I2C bus is held low\n",
    "camera: another chip answers\n",
    "camera: no frames come\n",
};

static void barrier(void)
{
    __asm__ volatile("dmb" : : : "memory");
}

/* An event, so that the other core looks at what was written before it. */
static void wake(void)
{
    barrier();
    __asm__ volatile("sev" : : : "memory");
}

static void hand_over(whose to)
{
    barrier();
    turn = to;
    wake();
}

/* Core 1 */

static uint8_t view[VIEW * VIEW];

static uint32_t pair_sums(uint32_t four)
{
    return (four & 0x00ff00ffu) + (four >> 8 & 0x00ff00ffu);
}

/* A frame, reduced to a view: each cell is the mean of 4x4 pixels. 0 if lines are missing. */
static int take_frame(void)
{
    uint32_t sums[VIEW] = {0};
    camera_begin();
    for (uint32_t row = 0; row < CAMERA_HIGH; row++) {
        const uint8_t *line = camera_line();
        if (!line) {
            return 0;
        }
        const uint32_t inner = row - CAMERA_BORDER;
        if (inner >= VIEW * CELL) { /* above, it has wrapped */
            continue;
        }
        const uint32_t *fours = (const uint32_t *)(const void *)(line + CAMERA_BORDER);
        for (uint32_t x = 0; x < VIEW; x++) {
            sums[x] += pair_sums(fours[x]);
        }
        if (inner % CELL == CELL - 1) {
            uint8_t *cells = view + inner / CELL * VIEW;
            for (uint32_t x = 0; x < VIEW; x++) {
                cells[x] = (uint8_t)(((sums[x] & 0xffffu) + (sums[x] >> 16)) / (CELL * CELL));
                sums[x] = 0;
            }
        }
    }
    return 1;
}

typedef struct {
    uint32_t began, shown, answered;
} rates;

/* Counts what was shown and answered, and once a second tells how many that were. */
static void count(rates *r, int answered)
{
    const uint32_t now = bt_counter_read(), us = now - r->began;
    r->shown++;
    r->answered += (uint32_t)answered;
    if (us >= RATE_US) {
        screen_rates(r->shown * 10000u / (us / 1000u), r->answered * 10000u / (us / 1000u));
        *r = (rates){.began = now};
    }
}

static void tell(volatile uint32_t *where, uint32_t what)
{
    if (*where != what) {
        *where = what;
        wake(); /* `turn` may be core 0's to set */
    }
}

/* What core 0 has found, and the next view for it if it has. */
static int exchange(uint8_t number)
{
    if (turn != TURN_CORE1) {
        return 0;
    }
    barrier();
    screen_answer(&job.is);
    for (uint32_t i = 0; i < sizeof view; i++) {
        job.view[i] = view[i];
    }
    job.number = number;
    hand_over(TURN_CORE0);
    return 1;
}

static void show(void)
{
    static uint32_t failed_at;
    if (display_stuck && bt_counter_read() - failed_at < DISPLAY_RETRY_US) {
        return;
    }
    tell(&display_stuck, !display_show(screen_pixels()));
    failed_at = bt_counter_read();
}

static void show_fault(camera_state what)
{
    tell(&camera_is, what);
    screen_fault(on_screen[what]);
    screen_rates(0, 0);
    show();
}

void bt_core1_main(void)
{
    rates r = {0};
    int first = 1;
    job.is.digit = -1; /* nothing is read yet */
    rest_init();
    tell(&display_silent, !display_start());
    screen_rates(0, 0);
    for (;;) {
        uint8_t number;
        camera_state state = camera_start();
        r = (rates){.began = bt_counter_read()};
        while (state == CAMERA_GOOD) {
            state = take_frame() ? camera_number(&number) : CAMERA_NO_FRAMES;
            if (state == CAMERA_GOOD) {
                tell(&camera_is, CAMERA_GOOD);
                screen_live(view);
                count(&r, exchange(number) && !first);
                first = 0;
                show();
            }
        }
        show_fault(state);
        pause_us(RETRY_US);
    }
}

/* Core 0 */

static void print_number(uint32_t value)
{
    char digits[11];
    char *first = digits + sizeof digits - 1;
    *first = '\0';
    do {
        *--first = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    bt_print(first);
}

/* Any model can be built into this: one of other sizes must not be written to. */
static int fits(void)
{
    const bt_model *m = &bt_the_model;
    return m->input_count == 1 && m->inputs[0].bytes == PICTURE * PICTURE * sizeof(float) && m->output_count == 1
        && m->outputs[0].bytes == DIGITS * sizeof(float);
}

static uint8_t percent(float part)
{
    return (uint8_t)(part >= 1.0f ? 100.0f : part > 0.0f ? part * 100.0f + 0.5f : 0.0f);
}

static void classify(void)
{
    float *input = bt_the_model.inputs[0].data;
    const float *output = bt_the_model.outputs[0].data;
    job.is.digit = -1;
    job.is.percent = 0;
    if (!vision_read(job.view, job.is.picture)) {
        return;
    }
    for (uint32_t i = 0; i < PICTURE * PICTURE; i++) {
        input[i] = (float)job.is.picture[i] * (1.0f / 255.0f);
    }
    bt_model_call();
    int8_t best = 0;
    for (int8_t i = 1; i < DIGITS; i++) {
        best = output[i] > output[best] ? i : best;
    }
    job.is.digit = best;
    job.is.percent = percent(output[best]);
}

static void say_faults(void)
{
    static uint32_t said_camera = NOT_YET_KNOWN, said_stuck, said_silent;
    const uint32_t camera = camera_is, stuck = display_stuck, silent = display_silent;
    if (silent != said_silent) {
        bt_print("display: it does not answer, or cannot be read\n");
        said_silent = silent;
    }
    if (stuck != said_stuck) {
        bt_print(stuck ? "display: pictures do not get through\n" : "display: pictures get through\n");
        said_stuck = stuck;
    }
    if (camera != said_camera) {
        bt_print(on_console[camera]);
        said_camera = camera;
    }
}

void bt_main(void)
{
    bt_print("pico4ml: ");
    bt_print(bt_the_model.name);
    bt_print(" on " BT_BOARD_NAME "\n");
    const int reads = fits();
    if (!reads) {
        bt_print("model: it does not take 784 floats and give ten: nothing is read\n");
    }
    for (;;) {
        while (turn != TURN_CORE0 || !reads) {
            __asm__ volatile("wfe" : : : "memory");
            say_faults();
        }
        barrier();
        const uint32_t began = bt_counter_read();
        classify();
        const uint32_t us = bt_counter_read() - began;
        const uint8_t number = job.number;
        const answer is = {.digit = job.is.digit, .percent = job.is.percent};
        hand_over(TURN_CORE1);
        bt_print("frame ");
        print_number(number);
        if (is.digit < 0) {
            bt_print(": nothing to read");
        } else {
            bt_print(": ");
            print_number((uint32_t)is.digit);
            bt_print(", ");
            print_number(is.percent);
            bt_print(" %");
        }
        bt_print(", ");
        print_number(us);
        bt_print(" us\n");
        say_faults();
    }
}
