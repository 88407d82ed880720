/* The image sensor HM01B0 of the Pico4ML without its pins: bytes of the I2C bus in, frames out. It knows no chip, so that
 * tests can use it alone. Whatever it does not model is refused: a register, a value, a combination of them.
 *
 * Sources: the register tables of blankchenxm/hm01b0-esp-idf-driver (from the preliminary data sheet V05), Zephyr's
 * drivers/video/hm01b0.c and ArmDeveloperEcosystem/hm01b0-library-for-pico. */

export const SIDE = 324; // pixels across and down the sensor
const WINDOW_ROWS = 244; // of the QVGA window, in the middle

/* The board carries the sensor rotated by 180 degrees. ArduCAM's firmware for it needs mirror and flip (pico-tflmicro
 * writes 0x03), or mirror and reversed rows (RPI-Pico-Cam, rp2040_hm01b0_st7735, writes 0x01), to show the scene upright. */
const MIRROR = 1, FLIP = 2;

/* With automatic exposure the mean of a frame follows its target. Frames in files are taken to be exposed for this one,
 * which is what ArduCAM's firmware writes. */
const USUAL_MEAN = 0x5f;

const [MODEL_HIGH, MODEL_LOW, FRAME_COUNT] = [0x0000, 0x0001, 0x0005];
const [MODE, ORIENTATION, RESET, APPLY] = [0x0100, 0x0101, 0x0103, 0x0104];
const [FRAME_LINES, LINE_CLOCKS, STEP_X, STEP_Y, BINNING] = [0x0340, 0x0342, 0x0383, 0x0387, 0x0390];
const [EXPOSURE, MEAN, LONGEST, WINDOW, INTERFACE, CLOCKS] = [0x2100, 0x2101, 0x2105, 0x3010, 0x3059, 0x3060];
const MOST_SIGNIFICANT_FIRST = 0x10, GATED = 0x20;

const any = () => true, one_of = (...values) => (value) => values.includes(value);

/* Which values are modelled, and why others are not. A `grouped` register takes effect with the first frame after
 * 0x0104 = 1. The others take effect at once and are written in standby only. */
const READ_ONLY = new Set([MODEL_HIGH, MODEL_LOW, FRAME_COUNT]);
const REGISTERS = new Map([
    [MODE, { fits: one_of(0, 1), why: 'only standby (0) and streaming (1) are modelled' }],
    [RESET, { fits: one_of(0, 1), why: 'a reset is 0 or 1' }],
    [APPLY, { fits: one_of(1), why: 'only 1, apply, is modelled' }],
    [ORIENTATION, { grouped: true, fits: (value) => value < 4, why: 'bit 0 mirrors, bit 1 flips, others are reserved' }],
    [FRAME_LINES, { grouped: true, fits: any }],
    [FRAME_LINES + 1, { grouped: true, fits: any }],
    [LINE_CLOCKS, { grouped: true, fits: any }],
    [LINE_CLOCKS + 1, { grouped: true, fits: any }],
    [STEP_X, { grouped: true, fits: one_of(1, 3), why: 'steps are 1, or 3 with binning' }],
    [STEP_Y, { grouped: true, fits: one_of(1, 3), why: 'steps are 1, or 3 with binning' }],
    [BINNING, { grouped: true, fits: one_of(0, 3), why: 'only none (0) and 2x2 (3) are modelled' }],
    [EXPOSURE, { grouped: true, fits: one_of(1), why: 'only automatic exposure (1) is modelled' }],
    [MEAN, { grouped: true, fits: (value) => value > 0, why: 'a mean of 0 is black' }],
    [LONGEST, { grouped: true, fits: any }],
    [LONGEST + 1, { grouped: true, fits: any }],
    [WINDOW, { grouped: true, fits: one_of(0, 1), why: 'bit 0 selects the QVGA window, others are reserved' }],
    [INTERFACE, { fits: one_of(0x22), why: 'the board has one data line: 0x22' }],
    [CLOCKS, {
        fits: (value) => (value & ~MOST_SIGNIFICANT_FIRST) === GATED,
        why: 'only core clock / 8, register clock / 4 and gated PCLK are modelled (0x20, or 0x30 with the most significant bit first)',
    }],
]);
const RESET_VALUES = [[MODE, 0], [ORIENTATION, 0], [APPLY, 0]]; // firmware must write the others

export class Refused extends Error {}

const name = (which) => `0x${which.toString(16).padStart(4, '0')}`;
const byte = (value) => `0x${value.toString(16).padStart(2, '0')}`;

export class Hm01b0 {
    constructor() {
        this.frames = 0; // sent so far; whatever sends them counts
        this.other_chip = false; // its identification is that of another chip
        this.reset();
    }

    reset() {
        this.written = new Map(RESET_VALUES);
        this.waiting = new Set(); // grouped registers that are written, and not yet applied
        this.taken = new Map(RESET_VALUES); // the values in effect from the next frame on
        this.address = [];
    }

    get streams() {
        return this.written.get(MODE) === 1;
    }

    // The I2C bus: two bytes of a register's number, then data; the number counts up with each byte of data

    begin_write() {
        this.address = [];
    }

    take(value) {
        if (this.address.length < 2) {
            this.address.push(value);
            return;
        }
        this.set(this.#next(), value);
    }

    give() {
        return this.get(this.#next());
    }

    #next() {
        if (this.address.length < 2) throw new Refused('data is transferred before the number of a register');
        const which = this.address[0] << 8 | this.address[1];
        this.address = [which + 1 >> 8 & 0xff, which + 1 & 0xff];
        return which;
    }

    // Registers

    get(which) {
        if (which === MODEL_HIGH) return 0x01;
        if (which === MODEL_LOW) return this.other_chip ? 0xb1 : 0xb0;
        if (which === FRAME_COUNT) return this.frames & 0xff;
        if (!REGISTERS.has(which)) throw new Refused(`register ${name(which)} is not modelled, and is read`);
        if (!this.written.has(which)) throw new Refused(`register ${name(which)} is read before it is written: its reset value is not modelled`);
        return this.written.get(which);
    }

    set(which, value) {
        const register = REGISTERS.get(which);
        if (READ_ONLY.has(which)) throw new Refused(`register ${name(which)} is read-only, and ${byte(value)} is written`);
        if (!register) throw new Refused(`register ${name(which)} is not modelled, and ${byte(value)} is written`);
        if (!register.fits(value)) throw new Refused(`value ${byte(value)} of register ${name(which)} is not modelled: ${register.why}`);
        if (which === RESET) {
            this.reset();
            return;
        }
        if (which === APPLY) {
            this.waiting.forEach((one) => this.taken.set(one, this.written.get(one)));
            this.waiting.clear();
        } else if (register.grouped) {
            this.waiting.add(which);
        } else if (which !== MODE && this.streams) {
            throw new Refused(`register ${name(which)} is written while the sensor streams`);
        }
        if (which === MODE && value === 1 && !this.streams) this.#check_start();
        this.written.set(which, value);
        if (!register.grouped) this.taken.set(which, value);
    }

    #check_start() {
        const late = [...this.waiting].map(name);
        if (late.length) throw new Refused(`streaming starts before 0x0104 = 1 applies ${late.join(', ')}`);
        const missing = [...REGISTERS.keys()].filter((which) => which !== RESET && !this.taken.has(which)).map(name);
        if (missing.length) throw new Refused(`streaming starts before ${missing.join(', ')} is written: reset values are not modelled`);
        this.shape();
    }

    // Frames, by the registers that are in force

    #word(which) {
        return this.taken.get(which) << 8 | this.taken.get(which + 1);
    }

    /* Pixels across and down a frame, the sensor's pixels across one of them, pixel clocks per line, lines per frame. */
    shape() {
        const binned = this.taken.get(BINNING) === 3, window = this.taken.get(WINDOW) === 1;
        const steps = [this.taken.get(STEP_X), this.taken.get(STEP_Y)];
        if (steps.some((step) => step !== (binned ? 3 : 1)) || binned && !window) {
            throw new Refused(`steps ${steps} (0x0383, 0x0387) with binning ${byte(this.taken.get(BINNING))} (0x0390) and window ${+window} (0x3010) are not modelled: `
                + 'steps of 1 need no binning, steps of 3 need 2x2 binning and the QVGA window');
        }
        const part = binned ? 2 : 1;
        const found = {
            wide: SIDE / part, high: (window ? WINDOW_ROWS : SIDE) / part, part,
            clocks: this.#word(LINE_CLOCKS), lines: this.#word(FRAME_LINES),
        };
        const clocks = binned ? 0xd7 : 0x178, lines = binned ? 0x80 : window ? 0x104 : 0x158; // the data sheet's minima
        if (found.clocks < clocks) throw new Refused(`a line of ${found.clocks} clocks (0x0342) is too short: at least ${clocks} are needed`);
        if (found.lines < lines) throw new Refused(`a frame of ${found.lines} lines (0x0340) is too short: at least ${lines} are needed`);
        if (this.#word(LONGEST) !== found.lines - 2) {
            throw new Refused(`a maximum exposure of ${this.#word(LONGEST)} lines (0x2105) is not modelled: only that of a frame less two, ${found.lines - 2}, is`);
        }
        return found;
    }

    /* Return the bytes of a frame in the order in which they are sent; the highest bit of each is sent first. `scene` is
     * SIDE x SIDE pixels as a person sees them who looks at the display with the USB socket at the bottom. Which pixels
     * the sensor bins is not documented: here the four next to each other, of which it sends the mean. */
    frame(scene) {
        const { wide, high, part } = this.shape(), orientation = this.taken.get(ORIENTATION);
        const gain = this.taken.get(MEAN) / USUAL_MEAN, top = (SIDE - high * part) / 2;
        const order = this.taken.get(CLOCKS) & MOST_SIGNIFICANT_FIRST ? (value) => value : reversed;
        const sent = new Uint8Array(wide * high);
        for (let row = 0, at = 0; row < high; row++) {
            const y = top + part * (orientation & FLIP ? row : high - 1 - row);
            for (let column = 0; column < wide; column++, at++) {
                const x = part * (orientation & MIRROR ? column : wide - 1 - column);
                let sum = 0;
                for (let i = 0; i < part * part; i++) sum += scene[(y + (i >> 1)) * SIDE + x + (i & 1)];
                sent[at] = order(Math.min(255, Math.round(sum / (part * part) * gain)));
            }
        }
        return sent;
    }
}

function reversed(value) {
    let other = 0;
    for (let bit = 0; bit < 8; bit++) other |= (value >> bit & 1) << 7 - bit;
    return other;
}
