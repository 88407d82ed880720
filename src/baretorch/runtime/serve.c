/* Answers the host's frames for ever. What arrives goes straight into the model's inputs. */
#include "bt_board.h"
#include "bt_runtime.h"
#include "crc.h"
#include "frame.h"

/* Functions that are not inlined, so that their frames are not on the stack while the model runs. bt_serve itself needs
 * almost nothing; on an AVR nothing, because it does not return. */
#if defined(__AVR__)
#define APART
#else
#define APART __attribute__((noinline))
#endif

static uint32_t crc; /* of the frame that is being received or sent */
static uint8_t seq;  /* of the request that is being served */

static void crc_add(uint8_t byte)
{
    crc = bt_crc_add(crc, byte);
}

/* Shorter than the watchdog's patience, which is tried only between bytes. */
#if defined(BT_WATCHDOG_MS) && BT_WATCHDOG_MS / 2u < BT_FRAME_PAUSE_MS
#define PAUSE_MS (BT_WATCHDOG_MS / 2u)
#else
#define PAUSE_MS BT_FRAME_PAUSE_MS
#endif

static int late; /* the rest of the frame did not come */

/* A byte of a frame; 0 once one has not come in time. */
static uint8_t get(void)
{
    uint8_t byte = 0;
    late = late || !bt_console_get_soon(&byte, PAUSE_MS);
    crc_add(byte);
    return byte;
}

static uint32_t get_u32(void)
{
    uint32_t value = get();
    value |= (uint32_t)get() << 8;
    value |= (uint32_t)get() << 16;
    value |= (uint32_t)get() << 24;
    return value;
}

/* Receives the frame's last four bytes; true if they are the CRC of the bytes before. */
static int crc_matches(void)
{
    const uint32_t expected = ~crc;
    return get_u32() == expected;
}

static void put(const void *data, uint32_t bytes)
{
    const uint8_t *byte = data;
    for (; bytes > 0; bytes--, byte++) {
        crc_add(*byte);
        bt_console_put(*byte);
        bt_watchdog_feed();
    }
}

#if defined(__AVR__) /* texts are not where outputs are */
static void put_text(const BT_FLASH char *text, uint32_t bytes)
{
    for (; bytes > 0; bytes--) {
        const char byte = *text++;
        put(&byte, 1);
    }
}
#else
#define put_text put
#endif

static void put_u8(uint8_t value)
{
    put(&value, 1);
}

static void put_u32(uint32_t value)
{
    for (int shift = 0; shift < 32; shift += 8) {
        put_u8((uint8_t)(value >> shift));
    }
}

static void begin(uint8_t type, uint32_t length)
{
    bt_print(BT_TEXT("BT"));
    crc = BT_CRC_BEGIN;
    put_u8(type);
    put_u8(seq);
    put_u32(length);
}

static void end(void)
{
    put_u32(~crc);
}

static uint32_t text_bytes(const BT_FLASH char *text)
{
    uint32_t n = 0;
    while (text[n] != '\0') {
        n++;
    }
    return n + 1; /* the NUL goes along */
}

static uint32_t total_bytes(const BT_FLASH bt_buffer *buffers, uint8_t count)
{
    uint32_t bytes = 0;
    for (uint8_t i = 0; i < count; i++) {
        bytes += buffers[i].bytes;
    }
    return bytes;
}

/* No `switch`, of which compilers make a table: on an AVR that would be in RAM. */
static const BT_FLASH char *why(uint8_t error)
{
    if (error == BT_ERROR_TYPE) {
        return BT_TEXT("unknown frame type");
    }
    if (error == BT_ERROR_LENGTH) {
        return BT_TEXT("the payload's length is not that of the inputs");
    }
    if (error == BT_ERROR_CRC) {
        return BT_TEXT("bytes were lost or changed: the CRC differs");
    }
    return BT_TEXT("the rest of the frame did not come in time");
}

static void send_error(uint8_t code, const BT_FLASH char *text)
{
    const uint32_t bytes = text_bytes(text);
    begin(BT_FRAME_ERROR, 1 + bytes);
    put_u8(code);
    put_text(text, bytes);
    end();
}

static void send_model(void)
{
    const BT_FLASH bt_model *m = &bt_the_model;
    const uint32_t name = text_bytes(m->name);
    begin(BT_FRAME_MODEL, 8 + 4u * m->input_count + 4u * m->output_count + name + sizeof BT_BOARD_NAME);
    put_u8(BT_FRAME_VERSION);
    put_u8(m->input_count);
    put_u8(m->output_count);
    put_u8(bt_watchdog_bit() ? BT_MODEL_RESTARTED : 0);
    put_u32(bt_chip_missing() ? BT_FALLBACK_COUNTER_HZ : BT_COUNTER_HZ);
    for (uint8_t i = 0; i < m->input_count; i++) {
        put_u32(m->inputs[i].bytes);
    }
    for (uint8_t i = 0; i < m->output_count; i++) {
        put_u32(m->outputs[i].bytes);
    }
    put_text(m->name, name);
    put_text(BT_TEXT(BT_BOARD_NAME), sizeof BT_BOARD_NAME);
    end();
}

static APART void receive_inputs(void)
{
    for (uint8_t i = 0; i < bt_the_model.input_count; i++) {
        uint8_t *to = bt_the_model.inputs[i].data;
        for (uint32_t n = bt_the_model.inputs[i].bytes; n > 0; n--) {
            *to++ = get();
        }
    }
}

static void send_result(uint32_t ticks)
{
    const BT_FLASH bt_model *m = &bt_the_model;
    begin(BT_FRAME_RESULT, 8 + total_bytes(m->outputs, m->output_count));
    put_u32(ticks);
    put_u32(bt_stack_peak());
    for (uint8_t i = 0; i < m->output_count; i++) {
        put(m->outputs[i].data, m->outputs[i].bytes);
    }
    end();
}

static void find_start(void)
{
    uint8_t before = 0;
    uint8_t byte = bt_console_get();
    while (before != 'B' || byte != 'T') {
        before = byte;
        byte = bt_console_get();
    }
}

/* Receives one frame: returns its type if it is valid, else its error, BT_ERROR_…, which are other numbers. An invalid
 * header is reported immediately, and the search for the next start begins. */
static APART uint8_t receive(void)
{
    find_start();
    crc = BT_CRC_BEGIN;
    late = 0;
    const uint8_t type = get();
    seq = get();
    const uint32_t length = get_u32();
    uint32_t expected = 0;
    if (late) {
        return BT_ERROR_TIME;
    }
    if (type == BT_FRAME_RUN) {
        expected = total_bytes(bt_the_model.inputs, bt_the_model.input_count);
    } else if (type != BT_FRAME_HELLO && type != BT_FRAME_RESET) {
        return BT_ERROR_TYPE;
    }
    if (length != expected) {
        return BT_ERROR_LENGTH;
    }
    if (type == BT_FRAME_RUN) {
        receive_inputs();
    }
    const int whole = crc_matches();
    if (late || !whole) {
        return late ? BT_ERROR_TIME : BT_ERROR_CRC;
    }
#ifdef BT_CHECK_INPUTS
    if (type == BT_FRAME_RUN && bt_model_wrong_input()) {
        return BT_ERROR_INPUT;
    }
#endif
    return type;
}

/* `ticks` are what the model took, if it ran. */
static APART void answer(uint8_t type, uint32_t ticks)
{
#ifdef BT_CHECK_INPUTS
    if (type == BT_ERROR_INPUT) {
        send_error(type, bt_model_wrong_input());
        return;
    }
#endif
    if (type == BT_FRAME_RUN) {
        send_result(ticks);
    } else if (type == BT_FRAME_HELLO) {
        send_model();
    } else if (type == BT_FRAME_RESET) {
        bt_model_reset();
        begin(BT_FRAME_DONE, 0);
        end();
    } else {
        send_error(type, why(type));
    }
}

void bt_serve(void)
{
    bt_model_reset();
    bt_print(BT_TEXT("baretorch: "));
    bt_print(bt_the_model.name);
    bt_print(BT_TEXT(" on " BT_BOARD_NAME ", ready\n"));
    for (;;) {
        const uint8_t type = receive();
        uint32_t ticks = 0;
        if (type == BT_FRAME_RUN) {
            const uint32_t before = bt_counter_read();
            bt_model_call();
            ticks = bt_counter_read() - before;
        }
        answer(type, ticks);
    }
}
