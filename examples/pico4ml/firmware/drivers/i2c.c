/* I2C0 of the RP2040 (datasheet 4.3). */
#include "i2c.h"
#include "rp2040.h"

#define I2C(offset) BT_REG(0x40044000u + (offset))
#define CON I2C(0x00u)
#define TAR I2C(0x04u)
#define DATA_CMD I2C(0x10u)
#define SS_SCL_HCNT I2C(0x14u)
#define SS_SCL_LCNT I2C(0x18u)
#define RAW_INTR_STAT I2C(0x34u)
#define CLR_INTR I2C(0x40u)
#define ENABLE I2C(0x6cu)
#define SDA_HOLD I2C(0x7cu)

#define CON_MASTER_STANDARD_SPEED 0x63u /* no slave, may restart */
#define CMD_READ (1u << 8)
#define CMD_STOP (1u << 9)
#define CMD_RESTART (1u << 10)
#define TX_ABORT (1u << 6)
#define STOP_DETECTED (1u << 9)

#define PATIENCE_US 5000u /* of a transfer: ten bytes take 0.9 ms */
#define HALF_CLOCK_US 5u

static uint32_t sda_pin, scl_pin;

void i2c_start(uint32_t sda, uint32_t scl)
{
    sda_pin = sda;
    scl_pin = scl;
    rp_restart(BLOCK_I2C0);
    ENABLE = 0;
    CON = CON_MASTER_STANDARD_SPEED;
    SS_SCL_HCNT = BT_CLOCK_HZ / 250000u;
    SS_SCL_LCNT = BT_CLOCK_HZ / 166667u;
    SDA_HOLD = 39; /* 300 ns */
    rp_pin(sda, PIN_I2C, PAD_PULL_UP);
    rp_pin(scl, PIN_I2C, PAD_PULL_UP);
}

/* Who was interrupted in the middle of a byte holds SDA low, and lets go within nine clocks. */
static int free_bus(void)
{
    rp_input(scl_pin); /* pulled up: nobody ever drives a line high */
    rp_input(sda_pin);
    rp_pin(scl_pin, PIN_SIO, PAD_PULL_UP);
    rp_pin(sda_pin, PIN_SIO, PAD_PULL_UP);
    for (int clocks = 0; clocks < 9 && !rp_level(sda_pin); clocks++) {
        rp_output(scl_pin, 0);
        pause_us(HALF_CLOCK_US);
        rp_input(scl_pin);
        pause_us(HALF_CLOCK_US);
    }
    pause_us(HALF_CLOCK_US); /* for the pull-ups */
    const int is_free = rp_level(sda_pin) && rp_level(scl_pin); /* who holds SCL cannot be clocked */
    i2c_start(sda_pin, scl_pin);
    return is_free;
}

static void address(uint32_t number)
{
    ENABLE = 0;
    TAR = number;
    ENABLE = 1;
    (void)CLR_INTR;
}

static i2c_result finish(void)
{
    const uint32_t began = bt_counter_read();
    while ((RAW_INTR_STAT & (STOP_DETECTED | TX_ABORT)) == 0) {
        if (bt_counter_read() - began > PATIENCE_US) {
            return free_bus() ? I2C_NO_ANSWER : I2C_STUCK;
        }
    }
    const int refused = (RAW_INTR_STAT & TX_ABORT) != 0;
    while (refused && (RAW_INTR_STAT & STOP_DETECTED) == 0 && bt_counter_read() - began <= PATIENCE_US) {
    }
    return refused ? I2C_NO_ANSWER : I2C_DONE;
}

i2c_result i2c_write(uint32_t number, const uint8_t *bytes, uint32_t count)
{
    address(number);
    for (uint32_t i = 0; i < count; i++) {
        DATA_CMD = bytes[i] | (i + 1 == count ? CMD_STOP : 0u);
    }
    return finish();
}

i2c_result i2c_read(uint32_t number, const uint8_t *bytes, uint32_t count, uint8_t *answer)
{
    address(number);
    for (uint32_t i = 0; i < count; i++) {
        DATA_CMD = bytes[i];
    }
    DATA_CMD = CMD_READ | CMD_RESTART | CMD_STOP;
    const i2c_result result = finish();
    *answer = result == I2C_DONE ? (uint8_t)DATA_CMD : 0;
    return result;
}
