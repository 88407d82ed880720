/* See camera.h. A state machine of PIO0 collects bits into bytes, DMA bytes into lines. Each line begins with its own
 * sync, so that a bit that is lost spoils no other line.
 *
 * Its clock is 125 MHz / 6 = 20.8 MHz; a line takes 376 pixels of eight clocks, a frame 344 lines: 20.1 frames a second. */
#include "camera.h"
#include "i2c.h"
#include "rp2040.h"

#define ADDRESS 0x24u
#define MODEL 0x01b0u
#define LINE_CLOCKS 376u
#define FRAME_LINES 344u
#define MCLK_DIVIDER 6u
#define FIRST_LINE_US 150000u /* three frames */
#define NEXT_LINE_US 2000u    /* fourteen lines */
#define RESET_US 100000u

/* Bit 0 reverses the columns, bit 1 the rows. Both are needed: the board carries the sensor rotated by 180 degrees, on the
 * side opposite to the display. ArduCAM's two firmwares for it agree on that, with the display upright (MADCTL 0x08, the
 * USB socket at the bottom) and columns in the order in which they are sent:
 *
 *     pico-tflmicro, include/arducam_hm01b0: writes 0x03, and draws rows in the order in which they are sent
 *     RPI-Pico-Cam, rp2040_hm01b0_st7735: writes 0x01, and draws the last row first
 *
 * Photographs of their displays with the scene behind the board (img/person_screen.jpg of the first, photos/ of the second)
 * show it upright and not mirrored. PicoHM01B0 of pmarques-dev also sets both for this board. We use rows as they come. */
#define ORIENTATION 0x03u

static const uint16_t set_up[][2] = {
    {0x3059, 0x22}, /* one data line */
    {0x3060, 0x30}, /* clock / 8, most significant bit first, PCLK only with pixels */
    {0x0383, 0x01}, /* every column */
    {0x0387, 0x01}, /* every line */
    {0x0390, 0x00}, /* no binning */
    {0x3010, 0x00}, /* all of the sensor */
    {0x0340, FRAME_LINES >> 8},
    {0x0341, FRAME_LINES & 0xff},
    {0x0342, LINE_CLOCKS >> 8},
    {0x0343, LINE_CLOCKS & 0xff},
    {0x2100, 0x01}, /* it finds the exposure itself, up to a frame's lines less two */
    {0x2101, 0x5f},
    {0x2105, (FRAME_LINES - 2) >> 8},
    {0x2106, (FRAME_LINES - 2) & 0xff},
    {0x0101, ORIENTATION},
    {0x0104, 0x01}, /* all that from the next frame on */
    {0x0100, 0x01}, /* begin */
};
#define MODEL_HIGH 0x0000u
#define MODEL_LOW 0x0001u
#define FRAME_COUNT 0x0005u
#define SOFTWARE_RESET 0x0103u

#define PWM(offset) BT_REG(0x40050000u + 0x14u * ((BT_PIN_CAMERA_MCLK >> 1) & 7u) + (offset)) /* 4.5 */

#define PIO0 0x50200000u /* 3 */
#define PIO_CTRL (PIO0 + 0x00u)
#define PIO_FSTAT BT_REG(PIO0 + 0x04u)
#define PIO_TXF0 BT_REG(PIO0 + 0x10u)
#define PIO_RXF0 (PIO0 + 0x20u)
#define PIO_INSTR_MEM(n) BT_REG(PIO0 + 0x48u + 4u * (n))
#define SM0_CLKDIV BT_REG(PIO0 + 0xc8u)
#define SM0_EXECCTRL BT_REG(PIO0 + 0xccu)
#define SM0_SHIFTCTRL BT_REG(PIO0 + 0xd0u)
#define SM0_INSTR BT_REG(PIO0 + 0xd8u)
#define SM0_PINCTRL BT_REG(PIO0 + 0xdcu)
#define RX_EMPTY (1u << 8)
#define AUTOPUSH_8_LEFT ((1u << 31) | (8u << 20) | (1u << 16)) /* and both FIFOs for receiving */

#define WAIT_LOW(pin) (0x2000u | (pin))
#define WAIT_HIGH(pin) (0x2080u | (pin))
#define MOV_X_Y 0xa022u
#define MOV_Y_OSR 0xa047u
#define IN_PIN 0x4001u
#define PULL 0x80a0u
#define JMP(to) (to)
#define JMP_X_DECREMENT(to) (0x0040u | (to))
#define FIRST_OF_LINE 3u
#define FIRST_OF_BIT 4u
#define LAST 9u

static const uint16_t program[LAST + 1] = {
    WAIT_LOW(BT_PIN_CAMERA_VSYNC),
    MOV_X_Y, /* the bits of a line less one */
    WAIT_HIGH(BT_PIN_CAMERA_VSYNC), /* a frame begins */
    WAIT_HIGH(BT_PIN_CAMERA_HREF), /* a line begins */
    WAIT_HIGH(BT_PIN_CAMERA_PCLK),
    IN_PIN,
    WAIT_LOW(BT_PIN_CAMERA_PCLK),
    JMP_X_DECREMENT(FIRST_OF_BIT),
    WAIT_LOW(BT_PIN_CAMERA_HREF),
    MOV_X_Y,
};

/* A line's first pixel behind its border lies at a multiple of four. */
static uint8_t lines[2][CAMERA_WIDE + 4] __attribute__((aligned(4)));
static uint32_t filling;
static uint32_t patience; /* microseconds for the next line */

static i2c_result set(uint32_t reg, uint32_t value)
{
    const uint8_t bytes[3] = {(uint8_t)(reg >> 8), (uint8_t)reg, (uint8_t)value};
    return i2c_write(ADDRESS, bytes, 3);
}

static i2c_result get(uint32_t reg, uint8_t *value)
{
    const uint8_t bytes[2] = {(uint8_t)(reg >> 8), (uint8_t)reg};
    return i2c_read(ADDRESS, bytes, 2, value);
}

static camera_state meaning(i2c_result result)
{
    return result == I2C_DONE ? CAMERA_GOOD : result == I2C_STUCK ? CAMERA_BUS_STUCK : CAMERA_NO_ANSWER;
}

static void start_clock(void)
{
    rp_restart(BLOCK_PWM);
    PWM(0x10u) = MCLK_DIVIDER - 1;
    PWM(0x0cu) = (MCLK_DIVIDER / 2) << (BT_PIN_CAMERA_MCLK & 1u ? 16 : 0);
    PWM(0x00u) = 1;
    rp_pin(BT_PIN_CAMERA_MCLK, PIN_PWM, PAD_PULL_DOWN);
}

static void start_capture(void)
{
    static const uint8_t inputs[] = {
        BT_PIN_CAMERA_D0, BT_PIN_CAMERA_PCLK, BT_PIN_CAMERA_HREF, BT_PIN_CAMERA_VSYNC,
    };
    rp_restart(BLOCK_PIO0);
    for (uint32_t i = 0; i < sizeof inputs; i++) {
        rp_pin(inputs[i], PIN_PIO0, PAD_PULL_DOWN);
    }
    for (uint32_t i = 0; i <= LAST; i++) {
        PIO_INSTR_MEM(i) = program[i];
    }
    SM0_CLKDIV = 1u << 16;
    SM0_EXECCTRL = (LAST << 12) | (FIRST_OF_LINE << 7);
    SM0_PINCTRL = BT_PIN_CAMERA_D0 << 15;
    SM0_SHIFTCTRL = 0; /* room to send: the program gets its one number */
    PIO_TXF0 = CAMERA_WIDE * 8u - 1u;
    SM0_INSTR = PULL;
    SM0_INSTR = MOV_Y_OSR;
    SM0_SHIFTCTRL = AUTOPUSH_8_LEFT;
}

camera_state camera_start(void)
{
    start_clock();
    rp_output(BT_PIN_CAMERA_RESET, 0);
    rp_pin(BT_PIN_CAMERA_RESET, PIN_SIO, PAD_PULL_DOWN);
    pause_us(RESET_US);
    rp_output(BT_PIN_CAMERA_RESET, 1);
    pause_us(RESET_US);
    i2c_start(BT_PIN_CAMERA_SDA, BT_PIN_CAMERA_SCL);
    uint8_t high, low;
    i2c_result result = get(MODEL_HIGH, &high);
    if (result == I2C_DONE) {
        result = get(MODEL_LOW, &low);
    }
    if (result != I2C_DONE) {
        return meaning(result);
    }
    if ((uint32_t)(high << 8 | low) != MODEL) {
        return CAMERA_UNKNOWN;
    }
    result = set(SOFTWARE_RESET, 0);
    for (uint32_t i = 0; i < sizeof set_up / sizeof *set_up && result == I2C_DONE; i++) {
        result = set(set_up[i][0], set_up[i][1]);
    }
    start_capture();
    return meaning(result);
}

static void receive(void)
{
    uint8_t *line = lines[filling] + 4 - CAMERA_BORDER;
    dma_receive(DMA_CAMERA, DREQ_PIO0_RX0, PIO_RXF0, line, CAMERA_WIDE, DMA_BYTES);
}

void camera_begin(void)
{
    BT_REG(PIO_CTRL + ATOMIC_CLEAR) = 1u;
    dma_stop(DMA_CAMERA);
    while ((PIO_FSTAT & RX_EMPTY) == 0) {
        (void)BT_REG(PIO_RXF0);
    }
    receive();
    patience = FIRST_LINE_US;
    BT_REG(PIO_CTRL + ATOMIC_SET) = 1u << 4; /* nothing of a byte is left */
    SM0_INSTR = JMP(0u);
    BT_REG(PIO_CTRL + ATOMIC_SET) = 1u;
}

const uint8_t *camera_line(void)
{
    if (!dma_wait(DMA_CAMERA, patience)) {
        return 0;
    }
    const uint8_t *line = lines[filling] + 4 - CAMERA_BORDER;
    filling ^= 1u;
    receive();
    patience = NEXT_LINE_US;
    return line;
}

camera_state camera_number(uint8_t *number)
{
    return meaning(get(FRAME_COUNT, number));
}
