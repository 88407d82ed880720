/* The I2C bus of the camera, 100 kHz: transfers that end, whatever is on the bus. */
#ifndef I2C_H
#define I2C_H

#include <stdint.h>

typedef enum {
    I2C_DONE,
    I2C_NO_ANSWER, /* nobody has that address, or it does not take what was sent */
    I2C_STUCK,     /* somebody holds a line low, also after nine clocks that should have freed it */
} i2c_result;

void i2c_start(uint32_t sda, uint32_t scl);
i2c_result i2c_write(uint32_t address, const uint8_t *bytes, uint32_t count);
i2c_result i2c_read(uint32_t address, const uint8_t *bytes, uint32_t count, uint8_t *answer); /* one byte, after these */

#endif
