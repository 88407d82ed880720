/* See display.h. Commands go out byte by byte, pixels by DMA, 16 bits at a time. */
#include "display.h"
#include "rp2040.h"

#define SPI1 0x40040000u /* 4.4 */
#define CR0 BT_REG(SPI1 + 0x00u)
#define CR1 BT_REG(SPI1 + 0x04u)
#define DR (SPI1 + 0x08u)
#define SR (SPI1 + 0x0cu)
#define CPSR BT_REG(SPI1 + 0x10u)
#define DMACR BT_REG(SPI1 + 0x24u)
#define SR_ROOM (1u << 1)
#define SR_BUSY (1u << 4)
#define DIVIDER 10u /* 12.5 MHz: it takes up to 15 */
#define CLK_PERI_CTRL BT_REG(0x40008048u)
#define CLK_PERI_ENABLE_SYS (1u << 11)

#define PICTURE_US 20000u /* to send one, and some more */
#define LEFT 24u          /* columns of its memory that the glass does not show */
#define READ_ID 0x04u
#define CASET 0x2au
#define RASET 0x2bu
#define RAMWR 0x2cu

/* Command, milliseconds to wait after it, number of bytes that follow, bytes. */
static const uint8_t set_up[] = {
    0x01, 150, 0,                                     /* reset */
    0x11, 150, 0,                                     /* awake */
    0xb1, 0, 3, 0x01, 0x2c, 0x2d,                     /* frame rates */
    0xb2, 0, 3, 0x01, 0x2c, 0x2d,
    0xb3, 0, 6, 0x01, 0x2c, 0x2d, 0x01, 0x2c, 0x2d,
    0xb4, 0, 1, 0x07,                                 /* inversion by columns */
    0xc0, 0, 3, 0xa2, 0x02, 0x84,                     /* voltages */
    0xc1, 0, 1, 0xc5,
    0xc2, 0, 2, 0x0a, 0x00,
    0xc3, 0, 2, 0x8a, 0x2a,
    0xc4, 0, 2, 0x8a, 0xee,
    0xc5, 0, 1, 0x0e,
    0x20, 0, 0,                                       /* colours as they are */
    0x36, 0, 1, 0x08,                                 /* upright, blue before red in the glass */
    0x3a, 0, 1, 0x05,                                 /* 16 bits a pixel */
    0x13, 10, 0,
    0x29, 100, 0,                                     /* on */
};

static int sending;

static void set_bits(uint32_t bits)
{
    CR1 = 0;
    CR0 = bits - 1u;
    CR1 = 1u << 1;
}

static void put(uint32_t byte)
{
    bt_wait(SR, SR_ROOM, SR_ROOM);
    BT_REG(DR) = byte;
}

static int drained(void)
{
    return bt_wait(SR, SR_BUSY, 0);
}

static void command(uint32_t code, const uint8_t *bytes, uint32_t count)
{
    set_bits(8);
    rp_output(BT_PIN_DISPLAY_DC, 0);
    rp_output(BT_PIN_DISPLAY_CS, 0);
    put(code);
    drained();
    rp_output(BT_PIN_DISPLAY_DC, 1);
    for (uint32_t i = 0; i < count; i++) {
        put(bytes[i]);
    }
    drained();
    rp_output(BT_PIN_DISPLAY_CS, 1);
}

static void clock(void)
{
    pause_us(1);
    rp_output(BT_PIN_DISPLAY_SCK, 1);
    pause_us(1);
    rp_output(BT_PIN_DISPLAY_SCK, 0);
}

/* It answers on the line that it is written by, so pins are moved by hand. Nobody there: the pull-up reads as ones. */
static int answers(void)
{
    uint32_t id = 0;
    rp_output(BT_PIN_DISPLAY_SCK, 0);
    rp_output(BT_PIN_DISPLAY_MOSI, 0);
    rp_pin(BT_PIN_DISPLAY_SCK, PIN_SIO, PAD_PULL_DOWN);
    rp_pin(BT_PIN_DISPLAY_MOSI, PIN_SIO, PAD_PULL_UP);
    rp_output(BT_PIN_DISPLAY_DC, 0);
    rp_output(BT_PIN_DISPLAY_CS, 0);
    for (uint32_t bit = 8; bit-- > 0;) {
        rp_output(BT_PIN_DISPLAY_MOSI, READ_ID >> bit & 1u);
        clock();
    }
    rp_input(BT_PIN_DISPLAY_MOSI);
    rp_output(BT_PIN_DISPLAY_DC, 1);
    clock(); /* while it turns round */
    for (uint32_t bit = 0; bit < 24; bit++) {
        pause_us(1);
        id = id << 1 | (uint32_t)rp_level(BT_PIN_DISPLAY_MOSI);
        clock();
    }
    rp_output(BT_PIN_DISPLAY_CS, 1);
    rp_pin(BT_PIN_DISPLAY_SCK, PIN_SPI, PAD_PULL_DOWN);
    rp_pin(BT_PIN_DISPLAY_MOSI, PIN_SPI, PAD_PULL_DOWN);
    return id != 0 && id != 0xffffffu;
}

int display_start(void)
{
    CLK_PERI_CTRL = CLK_PERI_ENABLE_SYS;
    rp_restart(BLOCK_SPI1);
    CPSR = DIVIDER;
    DMACR = 1u << 1; /* asks for what to send */
    static const uint8_t outputs[] = {BT_PIN_DISPLAY_CS, BT_PIN_DISPLAY_DC, BT_PIN_DISPLAY_RESET};
    for (uint32_t i = 0; i < sizeof outputs; i++) {
        rp_output(outputs[i], 1);
        rp_pin(outputs[i], PIN_SIO, PAD_PULL_UP);
    }
    rp_output(BT_PIN_DISPLAY_RESET, 0);
    pause_us(5000);
    rp_output(BT_PIN_DISPLAY_RESET, 1);
    pause_us(150000);
    const int answered = answers();
    for (const uint8_t *row = set_up; row < set_up + sizeof set_up; row += 3 + row[2]) {
        command(row[0], row + 3, row[2]);
        if (row[1]) {
            pause_us(row[1] * 1000u);
        }
    }
    return answered;
}

int display_show(const uint16_t pixels[DISPLAY_WIDE * DISPLAY_HIGH])
{
    static const uint8_t columns[4] = {0, LEFT, 0, LEFT + DISPLAY_WIDE - 1}, rows[4] = {0, 0, 0, DISPLAY_HIGH - 1};
    const int through = !sending || (dma_wait(DMA_DISPLAY, PICTURE_US) && drained());
    if (!through) {
        dma_stop(DMA_DISPLAY);
        rp_restart(BLOCK_SPI1);
        CPSR = DIVIDER;
        DMACR = 1u << 1;
    }
    rp_output(BT_PIN_DISPLAY_CS, 1);
    command(CASET, columns, 4);
    command(RASET, rows, 4);
    command(RAMWR, 0, 0);
    rp_output(BT_PIN_DISPLAY_CS, 0);
    set_bits(16);
    dma_send(DMA_DISPLAY, DREQ_SPI1_TX, pixels, DR, DISPLAY_WIDE * DISPLAY_HIGH, DMA_HALFWORDS);
    sending = 1;
    return through;
}
