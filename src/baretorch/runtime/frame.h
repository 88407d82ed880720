/* Frames between the host and the device, the same in both directions, little-endian:
 *
 *     'B' 'T'   type u8   seq u8   length u32   payload   crc u32
 *
 * crc is CRC-32 (reflected 0xedb88320, as in zlib) over type, seq, length and payload. Bytes outside frames are
 * text for people when the device sends them, and are skipped when the host does. A reply has the seq of its
 * request. A frame whose next byte takes longer than BT_FRAME_PAUSE_MS is dropped with an error, on chips that have a
 * clock. A host that lost its place may also send zero bytes until there is a reply. */
#ifndef BT_FRAME_H
#define BT_FRAME_H

#define BT_FRAME_VERSION 1u
#define BT_FRAME_PAUSE_MS 1000u

enum {
    /* from the host */
    BT_FRAME_HELLO = 'H', /* no payload */
    BT_FRAME_RUN = 'R',   /* all inputs, one after the other */
    BT_FRAME_RESET = 'Z', /* no payload: reset the model's state */

    /* from the device */
    BT_FRAME_MODEL = 'h',  /* version u8, inputs u8, outputs u8, flags u8, counter Hz u32, u32 bytes of each input and
                              output, model name NUL, board name NUL */
    BT_FRAME_RESULT = 'r', /* ticks of the call u32, deepest stack in bytes u32, all outputs */
    BT_FRAME_DONE = 'z',   /* no payload: it has forgotten */
    BT_FRAME_ERROR = 'e'   /* one of the codes below u8, text NUL */
};

/* Flags of BT_FRAME_MODEL. */
enum { BT_MODEL_RESTARTED = 1 }; /* by its watchdog: a model ran too long, or the program stopped */

/* After BT_ERROR_INPUT follows the name of an input that has NaN or infinite values; nothing has run. */
enum { BT_ERROR_CRC = 1, BT_ERROR_TYPE = 2, BT_ERROR_LENGTH = 3, BT_ERROR_INPUT = 4, BT_ERROR_TIME = 5 };

#endif
