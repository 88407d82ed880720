/* The flash chip, and the SSI between it and the bus. */
import { readFileSync } from 'node:fs';
import { FLASH, about, chip, clock } from './chip.mjs';

function read_uf2() {
    const bytes = readFileSync(about.uf2), blocks = [];
    for (let at = 0; at < bytes.length; at += 512) {
        const [place, size] = [bytes.readUInt32LE(at + 12) - FLASH, bytes.readUInt32LE(at + 16)];
        blocks.push([place, bytes.subarray(at + 32, at + 32 + size)]);
    }
    const contents = new Uint8Array(Math.max(...blocks.map(([place, data]) => place + data.length))).fill(0xff);
    for (const [place, data] of blocks) contents.set(data, place);
    return contents;
}

/* The parts of a W25Q16JV that start-up code uses: status registers, and the formats of reads. Its bit QE is not set, as in
 * a new chip. Flash reads as ones until the SSI is set up in a format that the chip understands. */
export const flash = { contents: read_uf2(), status: [0, 0], sent: [], continuous: false, writable: false, busy: 0 };
const QE = 2, WRITE_NANOS = 10e6;
export const NUMBER = Buffer.from('E66118604B3A7C25', 'hex'), SILENCE = 5; // what no other chip has, and bytes before it

function ask_flash(byte) {
    flash.sent.push(byte);
    const [command] = flash.sent;
    if (flash.continuous || flash.sent.length < 2) return 0xff;
    if (command === 0x05) return flash.status[0] | (clock.nanos < flash.busy ? 1 : 0) | (flash.writable ? 2 : 0);
    if (command === 0x4b) return NUMBER[flash.sent.length - 1 - SILENCE] ?? 0xff;
    return command === 0x35 ? flash.status[1] : 0xff;
}

/* The SSI has sent all that it had, and deselects the chip. */
function end_of_request() {
    const [command, ...data] = flash.sent;
    flash.sent = [];
    if (flash.continuous) {
        if (command & 2) flash.continuous = false;
    } else if (command === 0x06) {
        flash.writable = true;
    } else if (command === 0x01 && flash.writable && data.length === 2) {
        flash.status = [data[0] & ~3, about.quad ? data[1] : data[1] & ~QE];
        flash.writable = false;
        flash.busy = clock.nanos + WRITE_NANOS;
    }
}

const CTRLR0 = 0x00, SSIENR = 0x08, RXFLR = 0x24, SR = 0x28, DR0 = 0x60, SPI_CTRLR0 = 0xf4;
const ssi = { registers: new Map(), received: [] };

function ssi_format() {
    const [control, spi] = [CTRLR0, SPI_CTRLR0].map((offset) => ssi.registers.get(offset) ?? 0);
    const bits = (value, from, count) => value >>> from & (1 << count) - 1;
    return {
        reads: bits(control, 8, 2) === 3, quad: bits(control, 21, 2) === 2, word: bits(control, 16, 5) + 1,
        command: bits(spi, 8, 2) === 2, address: 4 * bits(spi, 2, 4), silence: bits(spi, 11, 5), lines: bits(spi, 0, 2),
        code: spi >>> 24,
    };
}

/* Whether what the SSI sends for a read of memory is what the flash chip expects. */
function is_readable() {
    const f = ssi_format();
    if (!ssi.registers.get(SSIENR) || !f.reads || f.word !== 32 || clock.nanos < flash.busy) return false;
    if (flash.continuous) {
        return f.quad && !f.command && f.address === 32 && f.silence === 4 && f.lines === 2 && f.code === 0xa0;
    }
    return !f.quad && f.command && f.code === 3 && f.address === 24 && f.silence === 0;
}

function show_flash() {
    if (is_readable()) chip.flash.set(flash.contents);
    else chip.flash.fill(0xff, 0, flash.contents.length);
}

chip.peripherals[0x18000] = {
    readUint32(offset) {
        if (offset === SR) {
            if (flash.sent.length) end_of_request();
            return 6 | (ssi.received.length ? 8 : 0); // room to send, nothing to send, something received
        }
        if (offset === RXFLR) return ssi.received.length;
        if (offset === DR0) return ssi.received.shift() ?? 0;
        return ssi.registers.get(offset) ?? 0;
    },
    writeUint32Atomic(offset, value) {
        const f = ssi_format();
        if (offset !== DR0) {
            ssi.registers.set(offset, value);
            if (offset === SSIENR && !value) ssi.received.length = flash.sent.length = 0;
            if (offset === SSIENR) show_flash();
        } else if (!f.reads) {
            ssi.received.push(ask_flash(value & 0xff));
        } else if (f.command && f.lines === 1 && !flash.sent.length) {
            flash.sent.push(value & 0xff); // the command; what follows is address and mode
        } else {
            const fits = flash.sent[0] === 0xeb && f.quad && f.address === 32 && f.silence === 4 && !flash.continuous;
            flash.sent.length = 0;
            flash.continuous = flash.continuous || fits && (flash.status[1] & QE) !== 0 && (value & 0x30) === 0x20;
            ssi.received.push(0xffffffff);
        }
    },
};
