/* An RP2040 of the npm package rp2040js with what the package lacks, as a process: bytes of the console come on standard
 * input and go to standard output. What calls of the run function took is written to an open file as JSON, before the
 * answer is sent. The only argument says what to run, see rp2040js.py.
 *
 * What is ours here, because version 1.4.1 does not have it or does otherwise than the chip:
 *   the boot ROM's way into the UF2's second stage, and the flash chip behind the SSI that this may ask;
 *   core 1, with the mailbox between the cores, events, and interrupts for both;
 *   faults: what the chip does not do ends in the image's own HardFault handler;
 *   WFI and WFE that wake without taking an interrupt while PRIMASK masks it. */
import { readFileSync, writeSync, ftruncateSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const about = JSON.parse(process.argv[2]);
const { RP2040 } = await import(pathToFileURL(about.library).href);

const FLASH = 0x10000000, FLASH_END = 0x14000000, RAM = 0x20000000;
const BOOT2 = 0x20041f00; // where the boot ROM copies the second stage to
const BOOT2_BYTES = 256;
const HARD_FAULT = 3;
const SEV = 0xbf40;
const BX = 0x4700; // and BLX, with the register's number in bits 3 to 6
const MAIL_ROOM = 8;
const SLICE = 20000; // instructions between looks at the standard input
const POLLS = 100; // so many looks at a console that has nothing: the image waits

const chip = new RP2040();
const Core = chip.core.constructor;
let trouble = null; // what the instruction did that the chip does not do

function give_up(text) {
    process.stderr.write(`rp2040js: ${text}\n`);
    process.exit(1);
}

/* Of the bus and of the core these are faults; other parts of the package say what they lack. */
function complain(part, text) {
    if (part === 'RP2040' || part === 'CortexM0Core') trouble = trouble ?? text;
    else give_up(`${part}: ${text}`);
}
chip.logger = { debug() {}, info() {}, warn: complain, error: complain };
console.warn = (...words) => complain('SIO', words.join(' '));
chip.onBreak = () => { trouble = 'a breakpoint or an undefined instruction'; };

function is_writable(address, mask) {
    if (address & mask) complain('RP2040', `unaligned write at ${hex(address)}`);
    else if (address >>> 0 < FLASH_END) complain('RP2040', `write to ROM or flash at ${hex(address)}`);
    else return true;
    return false;
}

/* An interrupt is pending from when its line rises until it is taken, and again if the line is still up after that; or
 * because a program says so. Pending ones end a sleep also while PRIMASK keeps them from being taken. */
function pend_as_the_chip(core) {
    const { exceptionEntry, exceptionReturn } = Core.prototype;
    let lines = 0;
    const pend = (bits) => {
        core.pendingInterrupts |= bits;
        core.interruptsUpdated = true;
        if (core.pendingInterrupts & core.enabledInterrupts) core.waiting = false;
    };
    core.setInterrupt = (irq, value) => {
        const bit = 1 << irq;
        if (value && !(lines & bit)) pend(bit);
        lines = value ? lines | bit : lines & ~bit;
    };
    core.exceptionEntry = (number) => {
        if (number >= 16) core.pendingInterrupts &= ~(1 << number - 16);
        exceptionEntry.call(core, number);
    };
    core.exceptionReturn = (how) => {
        exceptionReturn.call(core, how);
        pend(lines);
    };
}

/* One core, and what it has executed. */
class Watched {
    constructor(number, core) {
        this.number = number;
        this.core = core;
        this.asleep = false;
        this.instructions = 0; // outside of handlers
        this.handled = 0; // cycles in handlers
        this.end = 0; // behind the instruction before
        this.last = -1;
        this.home = number === 0 ? about.home : about.core1_home;
        this.running = false;
        this.met = 0; // instructions in meetings
        this.meeting = false;
        this.phase = 0;
        this.clock = 0; // instructions, and what it has waited for the other core in meetings
        this.signalled = [0, 0];
        this.executed = new Uint32Array(PLACES);
        this.taken = new Uint32Array(PLACES);
        this.touched = [];
        this.rows = [];
        pend_as_the_chip(core);
        core.readUint16 = (address) => {
            if (address & 1) complain('RP2040', `unaligned read at ${hex(address)}`);
            return chip.readUint16(address >>> 0);
        };
        core.writeUint8 = (address, value) => {
            if (is_writable(address, 0)) chip.writeUint8(address >>> 0, value);
        };
        core.writeUint16 = (address, value) => {
            if (is_writable(address, 1)) chip.writeUint16(address >>> 0, value);
        };
        core.writeUint32 = (address, value) => {
            if (is_writable(address, 3)) chip.writeUint32(address >>> 0, value);
        };
    }

    begin() {
        this.running = true;
        this.entered = { instructions: this.instructions, met: this.met, clock: this.clock, cycles: this.cycles };
        this.rows = [];
        this.at_home = this.number === 0;
        this.site = 0;
        this.last = -1;
    }

    finish() {
        this.running = false;
        this.write_rows();
        this.took = {
            instructions: this.instructions - this.entered.instructions,
            met: this.met - this.entered.met,
            path: this.clock - this.entered.clock,
            cycles: this.cycles - this.entered.cycles,
        };
    }

    get cycles() {
        return this.core.cycles - this.handled;
    }

    /* An instruction begins that is not part of a handler. */
    count(pc) {
        const place = place_of(pc);
        if (pc !== this.end) this.arrive(pc);
        if (this.running && this.executed[place]++ === 0) this.touched.push(place);
        this.last = place;
        this.end = pc + bytes_of(pc, place);
        this.instructions++;
        this.clock++;
        if (this.meeting) this.met++;
    }

    /* By a jump, a call or a return. */
    arrive(pc) {
        if (this.running) {
            if (this.last >= 0) this.taken[this.last]++;
            const at_home = within(pc, this.home);
            if (at_home !== this.at_home) {
                this.write_rows();
                this.at_home = at_home;
                this.site = at_home ? 0 : this.end;
            }
        }
        if (cores.length === 1) return;
        const meeting = within(pc, about.meets);
        const other = cores[1 - this.number];
        if (meeting && about.meets.includes(pc)) this.phase++;
        if (this.meeting && !meeting) this.clock = Math.max(this.clock, other.signalled[this.phase & 1]);
        this.meeting = meeting;
    }

    /* A row for each stretch that was executed as a whole. */
    write_rows() {
        const places = this.touched.sort((a, b) => a - b);
        for (let i = 0; i < places.length;) {
            const first = places[i], executed = this.executed[first];
            let instructions = 0, place, next = first;
            do {
                place = next;
                instructions++;
                next = place + sizes[place] / 2;
            } while (places[++i] === next && !this.taken[place] && this.executed[next] === executed);
            this.rows.push([this.site, address_of(first), instructions, executed, this.taken[place]]);
        }
        for (const place of places) this.executed[place] = this.taken[place] = 0;
        this.touched = [];
    }
}

/* Code is counted by halfword: first that in flash, then all of RAM. */
const FLASH_PLACES = (about.code[1] - about.code[0]) / 2 + 1;
const PLACES = FLASH_PLACES + chip.sram.length / 2;
const sizes = new Uint8Array(PLACES); // of instructions, 0 where none was executed
const special = new Uint8Array(PLACES); // what it is
const SIGNALS = 1, JUMPS = 2; // SEV; BX or BLX

function place_of(pc) {
    if (pc >= RAM && pc < RAM + chip.sram.length) return FLASH_PLACES + (pc - RAM) / 2;
    return pc >= about.code[0] && pc < about.code[1] ? (pc - about.code[0]) / 2 : FLASH_PLACES - 1;
}

function address_of(place) {
    return place < FLASH_PLACES ? about.code[0] + 2 * place : RAM + 2 * (place - FLASH_PLACES);
}

function bytes_of(pc, place) {
    if (sizes[place] === 0) {
        const opcode = chip.readUint16(pc);
        sizes[place] = opcode >> 11 >= 0x1d ? 4 : 2;
        special[place] = opcode === SEV ? SIGNALS : (opcode & 0xff07) === BX ? JUMPS : 0;
    }
    return sizes[place];
}

function within(pc, ranges) {
    for (let i = 0; i < ranges.length; i += 2) if (pc >= ranges[i] && pc < ranges[i + 1]) return true;
    return false;
}

function hex(number) {
    return `0x${(number >>> 0).toString(16).padStart(8, '0')}`;
}

// Two cores --------------------------------------------------------------------------------------------------------

const cores = [new Watched(0, chip.core)];
if (about.cores > 1) {
    cores.push(new Watched(1, new Core(chip)));
    cores[1].core.waiting = cores[1].asleep = true; // in its boot ROM
}
chip.setInterrupt = (irq, value) => cores.forEach(({ core }) => core.setInterrupt(irq, value));

const mail = [[], []]; // for each core
const boot_rom = { launched: false, got: [] };

function signal(from) {
    from.core.eventRegistered = true;
    if (cores.length === 1) return;
    if (from.meeting) from.signalled[from.phase & 1] = from.clock;
    const other = cores[1 - from.number];
    if (other.number === 1 && !boot_rom.launched) answer_as_boot_rom();
    else if (other.core.waiting) other.core.waiting = false;
    else other.core.eventRegistered = true;
}

/* 0, 0, 1, vector table, stack pointer, entry: each is answered with itself. Anything else is answered with 0, and
 * begins the sequence anew. */
function answer_as_boot_rom() {
    const { got } = boot_rom;
    while (mail[1].length && !boot_rom.launched) {
        const word = mail[1].shift();
        const fits = got.length < 2 ? word === 0 : got.length === 2 ? word === 1 : word !== 0;
        if (fits) got.push(word);
        else got.length = 0;
        if (mail[0].length < MAIL_ROOM) mail[0].push(fits ? word : 0);
        cores[0].core.eventRegistered = true;
        if (got.length < 6) continue;
        const { core } = cores[1];
        [core.VTOR, core.SP, core.PC] = [got[3], got[4], got[5] & ~1];
        core.waiting = false;
        boot_rom.launched = true;
    }
}

const sio_read = chip.sio.readUint32.bind(chip.sio), sio_write = chip.sio.writeUint32.bind(chip.sio);
const me = () => (chip.core === cores[0].core ? 0 : 1);
chip.sio.readUint32 = (offset) => {
    if (offset === 0x00) return me();
    if (offset === 0x50) return (mail[me()].length ? 1 : 0) | (mail[1 - me()].length < MAIL_ROOM ? 2 : 0);
    if (offset === 0x58) return mail[me()].shift() ?? 0;
    return sio_read(offset);
};
chip.sio.writeUint32 = (offset, value) => {
    if (offset === 0x54) {
        if (mail[1 - me()].length < MAIL_ROOM) mail[1 - me()].push(value >>> 0);
    } else if (offset !== 0x50) {
        sio_write(offset, value);
    }
};

// The console ------------------------------------------------------------------------------------------------------

const uart = chip.uart[0];
let input = Buffer.alloc(0), output = [], polls = 0;

function feed() {
    while (input.length && uart.enabled && !uart.rxFIFO.full) {
        uart.feedByte(input[0]);
        input = input.subarray(1);
        polls = 0;
    }
}
uart.onByte = (byte) => {
    output.push(byte);
    polls = 0;
};
const uart_read = uart.readUint32.bind(uart);
uart.readUint32 = (offset) => {
    feed();
    polls = uart.rxFIFO.empty ? polls + 1 : 0;
    return uart_read(offset);
};

function send() {
    for (let at = 0; at < output.length;) at += writeSync(1, Uint8Array.from(output.slice(at)));
    output = [];
}

// Time -------------------------------------------------------------------------------------------------------------

const { clock } = chip;
const { run, returned } = about;
let nanos_per_cycle = 1e9 / chip.clkSys;
chip.addClockListener((hz) => { nanos_per_cycle = 1e9 / hz; });
let cycles = 0; // of the core that is farthest
const calls = { instructions: [], cycles: [] };

function step(watched) {
    const { core } = watched;
    chip.core = core;
    if (core.interruptsUpdated) core.checkForInterrupts();
    const pc = core.PC & ~1, began = core.cycles, handler = core.IPSR !== 0;
    if (!handler) {
        if (watched.number === 0 && pc === run && !watched.running) begin_call();
        else if (pc === returned && watched.number === 0 && watched.running) end_call(pc);
        watched.count(pc);
        if (special[watched.last]) do_more(watched, pc);
    }
    core.executeInstruction();
    if (trouble !== null) fault(core, pc);
    if (handler) watched.handled += core.cycles - began;
    watched.asleep = core.waiting;
    if (core.cycles > cycles) {
        pass((core.cycles - cycles) * nanos_per_cycle);
        cycles = core.cycles;
    }
}

/* What the package leaves out of an instruction. */
function do_more(watched, pc) {
    if (special[watched.last] === SIGNALS) {
        signal(watched);
    } else {
        const target = watched.core.registers[chip.readUint16(pc) >> 3 & 15];
        if (!(target & 1)) complain('CortexM0Core', `jump to Arm code at ${hex(target)}`);
    }
}

/* Let time go by, as clock.tick does, which is slower. */
function pass(nanos) {
    clock.nanosCounter += nanos;
    if (clock.nextAlarm !== null && clock.nextAlarm.nanos <= clock.nanosCounter) clock.tick(0);
}

function fault(core, pc) {
    const text = `${trouble}, by the instruction at ${hex(pc)}`;
    trouble = null;
    if (core.IPSR === HARD_FAULT) give_up(`locked up: ${text}`);
    core.PC = pc;
    core.waiting = false;
    core.exceptionEntry(HARD_FAULT);
    if (trouble !== null) give_up(`locked up: ${trouble} after ${text}`);
}

function begin_call() {
    for (const watched of cores) {
        watched.clock = cores[0].clock;
        watched.begin();
    }
}

/* What core 1 has still to do until it waits again is part of the call. */
function end_call(pc) {
    if (pc !== cores[0].end) cores[0].arrive(pc);
    cores[0].finish();
    while (cores.length > 1 && !cores[1].core.waiting) step(cores[1]);
    cores[1]?.finish();
    chip.core = cores[0].core;
    calls.instructions.push(cores[0].took.path);
    calls.cycles.push(cores[0].took.cycles);
    const told = { ...calls, flash: flash.continuous ? 'EBh' : '03h', cores: cores.map(({ took }) => took), rows: cores.flatMap(({ rows }) => rows) };
    const text = Buffer.from(JSON.stringify(told));
    ftruncateSync(about.counts, 0);
    writeSync(about.counts, text, 0, text.length, 0);
}

/* The core that is behind; null if none can run. */
function next_core() {
    let next = null;
    for (const watched of cores) {
        if (watched.core.waiting) continue;
        if (watched.asleep) {
            watched.asleep = false;
            watched.core.cycles = Math.max(watched.core.cycles, cycles);
        }
        if (next === null || watched.core.cycles < next.core.cycles) next = watched;
    }
    return next;
}

/* Until it waits for input: then true. */
function run_slice() {
    feed();
    for (let i = 0; i < SLICE; i++) {
        const next = next_core();
        if (next !== null) {
            if (polls > POLLS && cores.every((watched) => watched === next || watched.core.waiting)) return true;
            step(next);
        } else if (clock.nextAlarm) {
            const nanos = Math.max(0, clock.nanosToNextAlarm);
            pass(nanos);
            cycles += nanos / nanos_per_cycle;
        } else {
            feed();
            if (next_core() === null) return true;
        }
    }
    return false;
}

// Flash ------------------------------------------------------------------------------------------------------------

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

/* What start-up code can know of a W25Q16JV: status registers, and how it is to be read. Its bit QE is not set, as in a
 * chip that nobody has used yet. Until the SSI is set up so that the two understand each other, flash reads as ones. */
const flash = { contents: read_uf2(), status: [0, 0], sent: [], continuous: false, writable: false, busy: 0 };
const QE = 2, WRITE_NANOS = 10e6;

function ask_flash(byte) {
    flash.sent.push(byte);
    const [command] = flash.sent;
    if (flash.continuous || flash.sent.length < 2) return 0xff;
    if (command === 0x05) return flash.status[0] | (clock.nanos < flash.busy ? 1 : 0) | (flash.writable ? 2 : 0);
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

// Boot -------------------------------------------------------------------------------------------------------------

function boot() {
    chip.clkSys = chip.roscFreq;
    nanos_per_cycle = 1e9 / chip.clkSys;
    chip.sram.fill(0xa5); // it holds nothing useful after power-up
    chip.sram.set(flash.contents.subarray(0, BOOT2_BYTES), BOOT2 - RAM);
    const { core } = cores[0];
    [core.SP, core.LR, core.PC] = [BOOT2, 0, BOOT2];
}

let more = () => {};
process.stdin.on('data', (data) => {
    input = Buffer.concat([input, data]);
    polls = 0;
    more();
});
process.stdin.on('end', () => process.exit(0));

boot();
for (;;) {
    const waits = run_slice();
    send();
    await new Promise(waits && !input.length ? (resolve) => { more = resolve; } : setImmediate);
}
