/* The USB controller of the RP2040 and the RP2350, as a serial port that is the console.
 *
 * Only the interrupt handler touches the controller. Bytes go through two rings in the part of the controller's memory
 * that the endpoints do not use. A ring's head belongs to the code that fills it, its tail to the code that empties it.
 * Code that has work for the handler raises its interrupt. A fault handler, which cannot be interrupted, calls it instead.
 *
 * Bytes that are put while the port is closed wait as far as there is room; the rest is lost. Waiting bytes survive bus
 * resets, but not that the port is closed. A reset closes it, too, but the same program may open it again.
 *
 * RP2040-E15: a bulk IN buffer that is handed over in the last fifth of a frame can stop the controller for good. There,
 * as in the vendor's code, packets wait for the next frame to begin. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"
#include "usb/descriptors.h"

#define REGISTER(offset) BT_REG(BT_USB_BASE + 0x10000u + (offset))
#define SET 0x2000u   /* alias of a register: sets the bits that are written as 1 */
#define CLEAR 0x3000u /* clears them */

#define ADDRESS REGISTER(0x00u)
#define MAIN_CTRL REGISTER(0x40u)
#define SOF_RD REGISTER(0x48u) /* number of the frame; reading it ends its interrupt */
#define SIE_CTRL REGISTER(0x4cu)
#define SIE_STATUS REGISTER(0x50u)
#define SIE_STATUS_CLEAR REGISTER(0x50u + CLEAR)
#define BUFF_STATUS REGISTER(0x58u)
#define BUFF_STATUS_CLEAR REGISTER(0x58u + CLEAR)
#define EP_ABORT_SET REGISTER(0x60u + SET)
#define EP_ABORT_CLEAR REGISTER(0x60u + CLEAR)
#define EP_ABORT_DONE REGISTER(0x64u)
#define EP_ABORT_DONE_CLEAR REGISTER(0x64u + CLEAR)
#define EP_STALL_ARM REGISTER(0x68u)
#define USB_MUXING REGISTER(0x74u)
#define USB_PWR REGISTER(0x78u)
#define INTR REGISTER(0x8cu)
#define INTE REGISTER(0x90u)
#define INTE_SET REGISTER(0x90u + SET)
#define INTE_CLEAR REGISTER(0x90u + CLEAR)

#define MAIN_CTRL_ENABLE 1u /* as a device; the RP2350 isolates its pins until PHY_ISO (bit 2) is written as 0 */
#define SIE_CTRL_EP0_INTERRUPTS (1u << 29)
#define SIE_CTRL_PULL_UP (1u << 16)
#define STATUS_BUS_RESET (1u << 19)
#define STATUS_SETUP (1u << 17)
#define MUXING_TO_PHY 9u
#define PWR_VBUS_IS_THERE 0xcu /* there is no pin for it */
#define INT_FRAME (1u << 17)
#define INT_SETUP (1u << 16)
#define INT_BUS_RESET (1u << 12)
#define INT_BUFFER (1u << 4)

/* An endpoint has an IN buffer, number 2n, and an OUT buffer, number 2n + 1. */
enum { EP0_IN = 0, EP0_OUT = 1, NOTICE_IN = 2, DATA_IN = 4, DATA_OUT = 5 };

#define ENDPOINT(buffer) BT_REG(BT_USB_BASE + 4u * (buffer)) /* endpoint 0 has none: the setup packet is there */
#define ENDPOINT_ENABLE (1u << 31)
#define ENDPOINT_INTERRUPTS (1u << 29)
#define ENDPOINT_BULK (2u << 26)
#define ENDPOINT_INTERRUPT (3u << 26)

#define CONTROL(buffer) BT_REG(BT_USB_BASE + 0x80u + 4u * (buffer))
#define FULL (1u << 15)
#define DATA1 (1u << 13)
#define STALL (1u << 11)
#define AVAILABLE (1u << 10) /* the controller's; it clears the bit when it is done */
#define LENGTH 0x3ffu
#define PATIENCE 1000u /* polls */
#define EARLY_US 750u  /* of a frame of 1,000 */

/* Places in the controller's memory. */
#define EP0_PLACE 0x100u
#define IN_PLACE 0x180u
#define OUT_PLACE 0x1c0u
#define NOTICE_PLACE 0x200u
#define STRING_PLACE 0x240u
#define RECEIVED_PLACE 0x400u
#define SENT_PLACE 0x800u
#define RING 1024u
#define MEMORY_BYTES 0x1000u
#define BYTES_AT(place) ((volatile uint8_t *)(uintptr_t)(BT_USB_BASE + (place)))

/* The ring of received bytes, and the ring of bytes to be sent. */
static volatile uint32_t received_head, received_tail, sent_head, sent_tail;
static volatile uint8_t sending;   /* a packet, or its zero-length end */
static volatile uint8_t full;      /* the OUT buffer, because the ring has no room for it */
static volatile uint8_t is_open;   /* the port: a program on the host holds it open (DTR) */
static uint8_t configuration, halted; /* halted: the buffers of endpoint 2 whose host asked for STALL, as bits */
static uint32_t in_flight;         /* bytes */
static uint8_t owes_end;           /* the last packet was full */
static uint32_t toggles;           /* of each buffer a bit: which data packet is next */
static uint8_t faulted;            /* the handler is called, and no interrupt is taken */
static uint8_t watches_frames;     /* their interrupt is on, because there is something to send */
static uint8_t knows_frame;        /* when the last one began: */
static uint32_t frame_began;       /* microseconds */

/* The control transfer under way. */
enum { IDLE, DATA_TO_HOST, DATA_FROM_HOST, STATUS };
static struct {
    const volatile uint8_t *data;
    uint16_t left, asked;
    uint8_t stage, owes_end;
    uint8_t address; /* to be taken on when it is over; 0: none */
    uint8_t restart; /* into the boot loader, when it is over */
} control;
static uint8_t line_coding[7] = {0x00, 0xc2, 0x01, 0x00, 0, 0, 8}; /* 115,200 baud, one stop bit, no parity, 8 bits */
#define BOOT_BAUD 1200u

/* Requests: type in the low byte, number in the high one. */
#define SET_LINE_CODING 0x2021u

static void copy(volatile uint8_t *to, const volatile uint8_t *from, uint32_t bytes)
{
    for (; bytes > 0; bytes--) {
        *to++ = *from++;
    }
}

/* The controller runs on another clock than the core: values must have settled before it reads them, which takes three of its
 * cycles. */
static void settle(void)
{
    for (volatile uint32_t n = 4; n > 0; n--) {
    }
}

static void arm(uint32_t buffer, uint32_t length)
{
    const uint32_t data = (toggles >> buffer & 1u) != 0 ? length | DATA1 : length;
    toggles ^= 1u << buffer;
    CONTROL(buffer) = data;
    settle();
    CONTROL(buffer) = data | AVAILABLE;
}

/* Notes which data packets have gone and come. */
static void look_at_data(void)
{
    const uint32_t done = BUFF_STATUS & (1u << DATA_IN | 1u << DATA_OUT);
    BUFF_STATUS_CLEAR = done;
    if ((done & 1u << DATA_IN) != 0) {
        sent_tail += in_flight;
        in_flight = 0;
        sending = 0;
    }
    if ((done & 1u << DATA_OUT) != 0) {
        full = (uint8_t)((CONTROL(DATA_OUT) & LENGTH) + 1u);
    }
}

/* Takes a buffer back, without a request on chips whose controller has none (RP2040-E2). */
static void take_back(uint32_t buffer)
{
    const uint32_t bit = 1u << buffer;
    const int aborts = (CONTROL(buffer) & AVAILABLE) != 0 && bt_usb_can_abort();
    if (aborts) {
        EP_ABORT_SET = bit;
        for (uint32_t looks = PATIENCE; looks > 0 && (EP_ABORT_DONE & bit) == 0; looks--) {
        }
    }
    look_at_data(); /* it may have ended just now, also before the check */
    CONTROL(buffer) = 0;
    if (aborts) {
        EP_ABORT_DONE_CLEAR = bit;
        EP_ABORT_CLEAR = bit;
    }
}

/* --- bytes ------------------------------------------------------------------------------------------------------- */

static int usable(uint32_t buffer)
{
    return configuration != 0 && (halted >> buffer & 1u) == 0;
}

/* Whether a packet may be handed over now. If not, the handler is called when it may. */
static int in_time(void)
{
    if (!bt_usb_sends_early()) {
        return 1;
    }
    if (watches_frames == 0) {
        (void)SOF_RD; /* the time of that one is unknown */
        watches_frames = 1;
        knows_frame = 0;
        if (faulted == 0) {
            INTE_SET = INT_FRAME;
        }
    }
    return knows_frame != 0 && bt_counter_read() - frame_began < EARLY_US;
}

static void look_at_frame(void)
{
    if (watches_frames != 0 && (INTR & INT_FRAME) != 0) {
        (void)SOF_RD;
        frame_began = bt_counter_read();
        knows_frame = 1;
    }
}

/* The next packet, or after a full one its end; called when none is under way. */
static void send(void)
{
    uint32_t bytes = sent_head - sent_tail;
    bytes = bytes < PACKET ? bytes : PACKET;
    if (!usable(DATA_IN) || (bytes == 0 && owes_end == 0)) {
        if (watches_frames != 0) {
            watches_frames = 0;
            INTE_CLEAR = INT_FRAME;
        }
        return;
    }
    if (!in_time()) {
        return;
    }
    sending = 1;
    for (uint32_t i = 0; i < bytes; i++) {
        BYTES_AT(IN_PLACE)[i] = BYTES_AT(SENT_PLACE)[(sent_tail + i) % RING];
    }
    in_flight = bytes;
    owes_end = bytes == PACKET;
    arm(DATA_IN, bytes | FULL);
}

static int has_room(void)
{
    return RING - (received_head - received_tail) >= PACKET;
}

/* Empties the OUT buffer if there is room, and returns it to the controller. */
static void receive(void)
{
    if (full == 0 || !has_room()) {
        return;
    }
    const uint32_t bytes = full - 1u;
    for (uint32_t i = 0; i < bytes; i++) {
        BYTES_AT(RECEIVED_PLACE)[(received_head + i) % RING] = BYTES_AT(OUT_PLACE)[i];
    }
    received_head += bytes;
    full = 0;
    if (usable(DATA_OUT)) {
        arm(DATA_OUT, PACKET);
    }
}

/* --- control transfers ------------------------------------------------------------------------------------------- */

static void send_control(void)
{
    const uint32_t bytes = control.left < PACKET ? control.left : PACKET;
    copy(BYTES_AT(EP0_PLACE), control.data, bytes);
    control.data += bytes;
    control.left = (uint16_t)(control.left - bytes);
    control.owes_end = control.owes_end && bytes == PACKET; /* a short packet is an end */
    arm(EP0_IN, bytes | FULL);
}

static void acknowledge(void)
{
    control.stage = STATUS;
    arm(EP0_IN, FULL);
}

/* The host may request less, and may end the transfer early by its empty packet, which is expected from now on. */
static void answer(const volatile uint8_t *data, uint32_t bytes)
{
    if (control.asked == 0) {
        acknowledge();
        return;
    }
    control.stage = DATA_TO_HOST;
    control.data = data;
    control.left = (uint16_t)(bytes < control.asked ? bytes : control.asked);
    control.owes_end = bytes < control.asked;
    arm(EP0_OUT, 0);
    send_control();
}

static void refuse(void)
{
    control.stage = IDLE;
    EP_STALL_ARM = 3; /* both directions of endpoint 0, until the next setup packet */
    CONTROL(EP0_IN) = STALL;
    CONTROL(EP0_OUT) = STALL;
}

/* Two of a kind with the same number would be one and the same to a host, so that none is better. */
static int has_number(void)
{
    uint32_t n = 1;
    while (n < SERIAL_DIGITS && bt_usb_digit(n) == bt_usb_digit(0)) {
        n++;
    }
    return n < SERIAL_DIGITS;
}

/* 0 after the last one. Within its caller it would cost the interrupt's frame eight bytes. */
__attribute__((noinline)) static uint8_t character(uint32_t number, uint32_t n)
{
    if (number != SERIAL_STRING) {
        return (uint8_t)strings[number][n];
    }
    return n < SERIAL_DIGITS ? (uint8_t)"0123456789ABCDEF"[bt_usb_digit(n)] : 0;
}

static void answer_string(uint32_t number)
{
    volatile uint8_t *to = BYTES_AT(STRING_PLACE);
    if (number == 0) {
        answer(language_descriptor, sizeof language_descriptor);
        return;
    }
    if (number > SERIAL_STRING || (number == SERIAL_STRING && !has_number())) {
        refuse();
        return;
    }
    uint32_t n = 0;
    for (uint8_t c; n < STRING_CHARACTERS && (c = character(number, n)) != 0; n++) {
        to[2 * n + 2] = c;
        to[2 * n + 3] = 0;
    }
    to[0] = (uint8_t)(2 * n + 2);
    to[1] = 0x03;
    answer(to, 2 * n + 2);
}

static void answer_descriptor(uint32_t value)
{
    if (value == 0x0100u) {
        copy(BYTES_AT(STRING_PLACE), device_descriptor, sizeof device_descriptor);
        if (!has_number()) {
            BYTES_AT(STRING_PLACE)[SERIAL_PLACE] = 0;
        }
        answer(BYTES_AT(STRING_PLACE), sizeof device_descriptor);
    } else if (value == 0x0200u) {
        answer(configuration_descriptor, sizeof configuration_descriptor);
    } else if (value >> 8 == 0x03u) {
        answer_string(value & 0xffu);
    } else { /* a qualifier, too: there is no other speed than this */
        refuse();
    }
}

/* Number of the buffer of an endpoint address other than 0; 0 if there is none, or none in use. */
static uint32_t buffer_of(uint32_t endpoint)
{
    if (configuration == 0 || (endpoint != NOTICE_ENDPOINT && endpoint != OUT_ENDPOINT && endpoint != IN_ENDPOINT)) {
        return 0;
    }
    return 2u * (endpoint & 0xfu) + (endpoint >> 7 ^ 1u);
}

/* Begins again with the first of the two kinds of data packets; what was under way goes again. */
static void restart(uint32_t buffer)
{
    take_back(buffer);
    halted = (uint8_t)(halted & ~(1u << buffer));
    toggles &= ~(1u << buffer);
    if (buffer == DATA_IN) {
        owes_end = sending != 0 && in_flight == 0;
        sending = 0; /* if it is too late in a frame, the next one begins it */
        in_flight = 0;
        send();
    } else if (buffer == DATA_OUT && full == 0) {
        arm(DATA_OUT, PACKET);
    }
}

static void halt(uint32_t buffer)
{
    take_back(buffer);
    halted = (uint8_t)(halted | 1u << buffer);
    CONTROL(buffer) = STALL;
}

static void configure(uint32_t value)
{
    configuration = (uint8_t)value;
    for (uint32_t buffer = NOTICE_IN; buffer <= DATA_OUT; buffer++) {
        take_back(buffer);
        ENDPOINT(buffer) = 0;
    }
    halted = 0;
    if (value == 0) {
        return;
    }
    ENDPOINT(NOTICE_IN) = ENDPOINT_ENABLE | ENDPOINT_INTERRUPT | NOTICE_PLACE;
    ENDPOINT(DATA_IN) = ENDPOINT_ENABLE | ENDPOINT_INTERRUPTS | ENDPOINT_BULK | IN_PLACE;
    ENDPOINT(DATA_OUT) = ENDPOINT_ENABLE | ENDPOINT_INTERRUPTS | ENDPOINT_BULK | OUT_PLACE;
    restart(NOTICE_IN);
    restart(DATA_IN);
    restart(DATA_OUT);
}

/* Nobody reads any more what the one who closed the port has not read. */
static void open_or_close(uint32_t opens)
{
    is_open = opens != 0;
    if (opens != 0) {
        return;
    }
    if (sending != 0 && usable(DATA_IN)) {
        take_back(DATA_IN);
        if (sending != 0) { /* it has not gone: the next is of its kind */
            toggles ^= 1u << DATA_IN;
        }
    }
    sending = 0;
    owes_end = 0;
    in_flight = 0;
    sent_tail = sent_head;
}

static void answer_status(uint32_t status)
{
    BYTES_AT(STRING_PLACE)[0] = (uint8_t)status;
    BYTES_AT(STRING_PLACE)[1] = 0;
    answer(BYTES_AT(STRING_PLACE), 2);
}

/* Requests to an endpoint: GET_STATUS, CLEAR_FEATURE, SET_FEATURE of ENDPOINT_HALT. */
static void serve_endpoint(uint32_t request, uint32_t feature, uint32_t endpoint)
{
    const uint32_t buffer = buffer_of(endpoint);
    if (request == 0x0082u && (buffer != 0 || (endpoint & 0x7fu) == 0)) {
        answer_status(buffer != 0 ? halted >> buffer & 1u : 0);
    } else if (request == 0x0102u && feature == 0 && buffer != 0) {
        restart(buffer);
        acknowledge();
    } else if (request == 0x0302u && feature == 0 && buffer != 0) {
        halt(buffer);
        acknowledge();
    } else {
        refuse();
    }
}

/* Requests to an interface: standard ones, of which there is nothing to choose, and those of the serial port. */
static void serve_interface(uint32_t request, uint32_t value, uint32_t interface)
{
    if (configuration == 0 || interface > 1) {
        refuse();
    } else if (request == 0x0081u) { /* GET_STATUS */
        answer_status(0);
    } else if (request == 0x0a81u) { /* GET_INTERFACE: the first setting is the only one */
        BYTES_AT(STRING_PLACE)[0] = 0;
        answer(BYTES_AT(STRING_PLACE), 1);
    } else if (request == 0x0b01u && value == 0) { /* SET_INTERFACE */
        acknowledge();
    } else if (request == 0x21a1u && interface == 0) { /* GET_LINE_CODING */
        answer(line_coding, sizeof line_coding);
    } else if (request == SET_LINE_CODING && interface == 0 && control.asked == sizeof line_coding) {
        control.stage = DATA_FROM_HOST;
        arm(EP0_OUT, PACKET);
    } else if (request == 0x2221u && interface == 0) { /* SET_CONTROL_LINE_STATE */
        open_or_close(value & 1u);
        acknowledge();
    } else {
        refuse();
    }
}

static void serve_device(uint32_t request, uint32_t value)
{
    if (request == 0x0680u) { /* GET_DESCRIPTOR */
        answer_descriptor(value);
    } else if (request == 0x0500u && value < 128) { /* SET_ADDRESS */
        control.address = (uint8_t)(value | 0x80u);
        acknowledge();
    } else if (request == 0x0900u && value <= 1) { /* SET_CONFIGURATION */
        configure(value);
        acknowledge();
    } else if (request == 0x0880u) { /* GET_CONFIGURATION */
        BYTES_AT(STRING_PLACE)[0] = configuration;
        answer(BYTES_AT(STRING_PLACE), 1);
    } else if (request == 0x0080u) { /* GET_STATUS: powered by the bus, no remote wake-up */
        answer_status(0);
    } else {
        refuse();
    }
}

/* A new request, which ends the one before, however far that was. */
static void serve_setup(void)
{
    take_back(EP0_IN);
    take_back(EP0_OUT);
    BUFF_STATUS_CLEAR = 3;
    SIE_STATUS_CLEAR = STATUS_SETUP; /* before it is read: another one that arrives now is recorded, and served next */
    const uint32_t first = ENDPOINT(0), second = ENDPOINT(1);
    const uint32_t request = first & 0xffffu, value = first >> 16, index = second & 0xffffu;
    toggles |= 3; /* data and status begin with DATA1 */
    control.asked = (uint16_t)(second >> 16);
    control.address = 0;
    control.restart = 0;
    if ((request & 0x80u) == 0 && control.asked != 0 && request != SET_LINE_CODING) {
        refuse(); /* nothing else takes data */
        return;
    }
    switch (request & 0x7fu) {
    case 0x00u:
        serve_device(request, value);
        break;
    case 0x02u:
        serve_endpoint(request, value, index);
        break;
    case 0x01u:
    case 0x21u:
        serve_interface(request, value, index);
        break;
    default:
        refuse();
    }
}

static void control_sent(void)
{
    if (control.stage == DATA_TO_HOST && (control.left > 0 || control.owes_end != 0)) {
        send_control();
    } else if (control.stage == STATUS) {
        control.stage = IDLE;
        if (control.address != 0) {
            ADDRESS = control.address & 0x7fu;
        }
        if (control.restart != 0) {
            bt_usb_boot_loader();
        }
    }
}

static void control_received(void)
{
    if (control.stage == DATA_TO_HOST) { /* the host has all that it requested */
        take_back(EP0_IN);
        control.stage = IDLE;
    } else if (control.stage == DATA_FROM_HOST && (CONTROL(EP0_OUT) & LENGTH) == sizeof line_coding) {
        copy(line_coding, BYTES_AT(EP0_PLACE), sizeof line_coding);
        const uint32_t baud = line_coding[0] | (uint32_t)line_coding[1] << 8 | (uint32_t)line_coding[2] << 16;
        control.restart = baud == BOOT_BAUD && line_coding[3] == 0;
        acknowledge();
    } else {
        refuse();
    }
}

/* --- the interrupt ----------------------------------------------------------------------------------------------- */

static void reset(void)
{
    ADDRESS = 0;
    take_back(EP0_IN);
    take_back(EP0_OUT);
    configure(0);
    is_open = 0;
    sending = 0;
    owes_end = 0;
    in_flight = 0; /* what was under way goes again */
    control.stage = IDLE;
    BUFF_STATUS_CLEAR = ~0u;
    SIE_STATUS_CLEAR = STATUS_BUS_RESET | STATUS_SETUP;
    bt_usb_after_reset();
}

static void serve_buffers(void)
{
    const uint32_t done = BUFF_STATUS & (1u << EP0_IN | 1u << EP0_OUT);
    BUFF_STATUS_CLEAR = done;
    if ((done & 1u << EP0_IN) != 0) {
        control_sent();
    }
    if ((done & 1u << EP0_OUT) != 0) {
        control_received();
    }
    look_at_data();
}

void bt_usb_interrupt(void)
{
    look_at_frame();
    serve_buffers();
    const uint32_t status = SIE_STATUS;
    if ((status & STATUS_BUS_RESET) != 0) {
        reset();
    } else if ((status & STATUS_SETUP) != 0) {
        serve_setup();
    }
    receive();
    if (sending == 0) {
        send();
    }
}

/* --- the console ------------------------------------------------------------------------------------------------- */

static void call_handler(void)
{
    if (bt_interrupts_blocked()) {
        faulted = 1;
        INTE = 0; /* another core may still take it */
        bt_usb_interrupt();
    } else {
        bt_interrupt_raise();
    }
}

void bt_console_init(void)
{
    if (!bt_usb_start()) {
        return; /* the port is never opened */
    }
    for (uint32_t at = 0; at < MEMORY_BYTES; at += 4) {
        BT_REG(BT_USB_BASE + at) = 0;
    }
    USB_MUXING = MUXING_TO_PHY;
    USB_PWR = PWR_VBUS_IS_THERE;
    MAIN_CTRL = MAIN_CTRL_ENABLE;
    INTE = INT_SETUP | INT_BUS_RESET | INT_BUFFER;
    bt_interrupt_enable();
    SIE_CTRL = SIE_CTRL_EP0_INTERRUPTS | SIE_CTRL_PULL_UP; /* now hosts see a device */
}

void bt_console_rest(void)
{
    if (bt_interrupts_blocked()) {
        call_handler();
    } else {
        bt_nap();
    }
}

static void wait_for_room(void)
{
    bt_mask_interrupts();
    while (is_open != 0 && sent_head - sent_tail == RING) {
        bt_console_rest();
    }
    bt_unmask_interrupts();
}

void bt_console_put(uint8_t byte)
{
    if (sent_head - sent_tail == RING) {
        wait_for_room();
        if (is_open == 0) {
            return;
        }
    }
    BYTES_AT(SENT_PLACE)[sent_head % RING] = byte;
    sent_head++;
    if (sending == 0) {
        call_handler();
    }
}

int bt_console_ready(void)
{
    return received_head != received_tail;
}

uint8_t bt_console_take(void)
{
    const uint8_t byte = BYTES_AT(RECEIVED_PLACE)[received_tail % RING];
    received_tail++;
    if (full != 0 && has_room()) {
        call_handler();
    }
    return byte;
}
