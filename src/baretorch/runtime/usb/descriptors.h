/* What a USB host reads of the console: a serial port (CDC-ACM), class-compliant, so that no computer needs a driver. */
#ifndef BT_USB_DESCRIPTORS_H
#define BT_USB_DESCRIPTORS_H

#include <stdint.h>

#define PACKET 64u /* bytes at most, of every endpoint but the one for notices */

/* Raspberry Pi's vendor number, and theirs for a Pico that is a serial port: hosts find the port by it, and
 * machines/hardware/serial.py by the maker's name. */
#define VENDOR 0x2e8au
#define PRODUCT 0x000au
#define RELEASE 0x0100u

#define MAKER_STRING 1u
#define PRODUCT_STRING 2u
#define SERIAL_STRING 3u
#define SERIAL_PLACE 16u  /* in the device's descriptor: 0 for chips that have no number of their own */
#define SERIAL_DIGITS 16u /* as the vendor's programs write it */

#define LOW(x) ((uint8_t)(x))
#define HIGH(x) ((uint8_t)((x) >> 8))

static const uint8_t device_descriptor[18] = {
    18, 0x01,               /* device */
    0x00, 0x02,             /* USB 2.0 */
    0xef, 0x02, 0x01,       /* interface associations describe its functions */
    PACKET,                 /* of endpoint 0 */
    LOW(VENDOR), HIGH(VENDOR), LOW(PRODUCT), HIGH(PRODUCT), LOW(RELEASE), HIGH(RELEASE),
    MAKER_STRING, PRODUCT_STRING, SERIAL_STRING,
    1,                      /* configuration */
};

#define NOTICE_ENDPOINT 0x81u
#define OUT_ENDPOINT 0x02u
#define IN_ENDPOINT 0x82u
#define CONFIGURATION_BYTES 75u

static const uint8_t configuration_descriptor[CONFIGURATION_BYTES] = {
    9, 0x02, CONFIGURATION_BYTES, 0, /* configuration */
    2, 1, 0,                         /* two interfaces, it is number 1, it has no name */
    0x80, 125,                       /* powered by the bus, with up to 250 mA */

    8, 0x0b, 0, 2, 0x02, 0x02, 0, 0, /* both interfaces are one CDC-ACM function */

    9, 0x04, 0, 0, 1, 0x02, 0x02, 0, 0, /* interface 0: CDC-ACM */
    5, 0x24, 0x00, 0x10, 0x01,          /* CDC 1.10 */
    5, 0x24, 0x01, 0, 1,                /* no call management; data go over interface 1 */
    4, 0x24, 0x02, 0x02,                /* takes line coding and control line state */
    5, 0x24, 0x06, 0, 1,                /* the union of interfaces 0 and 1 */
    7, 0x05, NOTICE_ENDPOINT, 3, 8, 0, 255, /* interrupt, 8 bytes, each 255 ms */

    9, 0x04, 1, 0, 2, 0x0a, 0, 0, 0,    /* interface 1: CDC data */
    7, 0x05, OUT_ENDPOINT, 2, PACKET, 0, 0,
    7, 0x05, IN_ENDPOINT, 2, PACKET, 0, 0,
};

static const char *const strings[] = {[MAKER_STRING] = "Baretorch", [PRODUCT_STRING] = BT_BOARD_NAME};
#define STRING_CHARACTERS 31u /* what fits one packet, in UTF-16; the rest of a longer name is cut off */

static const uint8_t language_descriptor[4] = {4, 0x03, 0x09, 0x04}; /* English (United States) */

#endif
