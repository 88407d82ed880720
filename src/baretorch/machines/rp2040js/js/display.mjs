/* An ST7735S with glass of 80x160 at the pins: commands and data over SPI, its window, its memory, RGB565, and the reply
 * to `read ID` on the line of its input. Each complete picture is reported, with its PNG on request.
 *
 * It replaces the SPI of version 1.4.1 of the package, which takes no time to send. */
import { chip, clock, give_up } from './chip.mjs';
import { attached, fails, tell, when_reset } from './attached.mjs';
import { png } from './png.mjs';

const MEMORY_WIDE = 132, MEMORY_HIGH = 162, LEFT = 24, WIDE = 80, HIGH = 160;
const SHORTEST_NANOS = 66; // of its clock
const RESET_NANOS = 120e6; // until it can be woken
const ID = 0x7c89f0;
const [SOFTWARE_RESET, READ_ID, AWAKE, ON, COLUMNS, ROWS, WRITE, ORDER, FORMAT] = [
    0x01, 0x04, 0x11, 0x29, 0x2a, 0x2b, 0x2c, 0x36, 0x3a,
];

export function attach_display() {
    const { pins, pictures } = attached.display;
    const [sck, mosi, cs, dc, reset] = ['sck', 'mosi', 'cs', 'dc', 'reset'].map((name) => chip.gpio[pins[name]]);
    const memory = new Uint16Array(MEMORY_WIDE * MEMORY_HIGH);
    const got = { command: null, bytes: [], reset_at: 0, on: false, awake: false, order: 0, format: 0 };
    const area = { left: 0, right: 0, top: 0, bottom: 0, x: 0, y: 0 };
    let whole = 0;

    reset.addListener((value) => { if (value === 0) start_over(); });
    function start_over() {
        Object.assign(got, { command: null, bytes: [], reset_at: clock.nanos, on: false, awake: false, order: 0, format: 0 });
    }

    // What comes

    function take_command(code) {
        Object.assign(got, { command: code, bytes: [] });
        if (code === SOFTWARE_RESET) start_over();
        if (code === AWAKE) {
            if (clock.nanos - got.reset_at < RESET_NANOS) give_up('the ST7735 is woken less than 120 ms after its reset');
            got.awake = true;
        }
        if (code === ON) got.on = true;
        if (code === WRITE) {
            [area.x, area.y] = [area.left, area.top];
            if (got.format !== 5 || got.order & 0xf0) give_up('the ST7735 is modelled upright with 16 bits a pixel only');
        }
    }
    function take_data(byte) {
        got.bytes.push(byte);
        const { command, bytes } = got;
        if (command === ORDER) got.order = byte;
        else if (command === FORMAT) got.format = byte & 7;
        else if (command === COLUMNS && bytes.length === 4) [area.left, area.right] = ends();
        else if (command === ROWS && bytes.length === 4) [area.top, area.bottom] = ends();
        else if (command === WRITE && bytes.length === 2) take_pixel(bytes[0] << 8 | bytes[1]);
    }
    const ends = () => [got.bytes[0] << 8 | got.bytes[1], got.bytes[2] << 8 | got.bytes[3]];
    function take_pixel(colour) {
        got.bytes = [];
        memory[area.y * MEMORY_WIDE + area.x] = colour;
        if (area.x++ < area.right) return;
        area.x = area.left;
        if (area.y++ < area.bottom) return;
        area.y = area.top;
        if (got.on && got.awake) show();
    }
    function show() {
        const colour = (x, y) => memory[y * MEMORY_WIDE + LEFT + x];
        tell({ picture: whole++, png: pictures ? png(WIDE, HIGH, colour).toString('base64') : null });
    }

    // SPI

    const spi = chip.spi[1];
    const sent = clock.createAlarm(() => spi.completeTransmit(0));
    spi.onTransmit = (value) => {
        const period = spi.clockDivisor * (1 + (spi.control0 >> 8 & 0xff)) * 1e9 / chip.clkPeri;
        if (period < SHORTEST_NANOS) give_up(`the ST7735 takes a clock of ${SHORTEST_NANOS} ns and more, not ${period}`);
        if (fails('display stuck')) return;
        sent.schedule(spi.dataBits * period);
        if (cs.value !== 0 || fails('display silent')) return;
        const bytes = spi.dataBits === 16 ? [value >> 8, value & 0xff] : [value];
        bytes.forEach(dc.value === 0 ? take_command : take_data);
    };
    when_reset(17, () => {
        sent.cancel();
        spi.busy = false;
        spi.txFIFO.reset();
        spi.rxFIFO.reset();
    });

    // By hand: it reads a bit when the clock rises, and outputs the next one when it falls

    let command = 0, clocks = 0;
    mosi.setInputValue(true); // pulled up
    cs.addListener((value) => {
        if (value === 1) mosi.setInputValue(true);
        [command, clocks] = [0, 0];
    });
    sck.addListener((value) => {
        if (cs.value !== 0 || sck.functionSelect !== 5 || value > 1) return;
        if (value === 1) {
            clocks++;
            if (clocks <= 8) command = command << 1 | (mosi.value === 1 ? 1 : 0);
        } else if (clocks > 8 && command === READ_ID && !fails('display silent')) {
            const at = clocks - 9; // one clock while the line turns round
            mosi.setInputValue((ID >> 23 - at & 1) === 1);
        }
    });
}
