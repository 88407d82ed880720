/* An RP2040 of the npm package rp2040js with what the package lacks, as a process: bytes of the console are read from
 * standard input and written to standard output. The figures of calls of the run function are written to an open file as
 * JSON, before the reply is sent. The only argument describes what to run, see machine.py.
 *
 * These files add what version 1.4.1 lacks, or does differently from the chip: the boot ROM's way into the UF2's
 * second stage; core 1, interrupts and faults (cores.mjs); the flash chip (flash.mjs); a host on the
 * other end of the USB cable (usb.mjs); a camera and a display (camera.mjs, display.mjs); what gdb talks to (gdb.mjs). */
import { ftruncateSync, writeSync } from 'node:fs';
import { RAM, about, chip, clock, complain, faults, give_up, hex } from './chip.mjs';
import { cores, signal } from './cores.mjs';
import { SIGNALS, special } from './counting.mjs';
import { flash } from './flash.mjs';
import { gdb } from './gdb.mjs';
import './stream.mjs';
import { line } from './line.mjs';
import { attached } from './attached.mjs';
import { attach_camera } from './camera.mjs';
import { attach_display } from './display.mjs';
import { feed_usb } from './usb.mjs';

const BOOT2 = 0x20041f00; // where the boot ROM copies the second stage to
const BOOT2_BYTES = 256;
const HARD_FAULT = 3;
const SLICE = 20000; // instructions between reads of the standard input
const CALL_ROOM = 4096; // the number of last calls that are reported
const PACED = 1e6; // nanoseconds: sleep of at least that is slept

// The console

const uart = chip.uart[0];

function feed() {
    if (about.usb) feed_usb();
    else feed_uart();
}

function feed_uart() {
    while (line.input.length && uart.enabled && !uart.rxFIFO.full) {
        uart.feedByte(line.input[0]);
        line.input = line.input.subarray(1);
    }
}
uart.onByte = (byte) => line.output.push(byte);
const uart_read = uart.readUint32.bind(uart);
uart.readUint32 = (offset) => {
    feed_uart();
    return uart_read(offset);
};

function send() {
    for (let at = 0; at < line.output.length;) at += writeSync(1, Uint8Array.from(line.output.slice(at)));
    line.output = [];
}

chip.peripherals[0x40058].onWatchdogTrigger = () => give_up('the watchdog restarts the chip, which is not emulated here');

// Time

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
    if (faults.trouble !== null) fault(core, pc);
    if (handler) watched.handled += core.cycles - began;
    if (core.waiting && is_pending(core)) core.waiting = false;
    watched.asleep = core.waiting;
    if (core.cycles > cycles) {
        pass((core.cycles - cycles) * nanos_per_cycle);
        cycles = core.cycles;
    }
}

/* Who has an interrupt pending does not begin to sleep. */
function is_pending(core) {
    return core.pendingSystick || (core.pendingInterrupts & core.enabledInterrupts) !== 0;
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
    if (clock.nextAlarm === null || clock.nextAlarm.nanos > clock.nanosCounter) return;
    chip.core = cores[0].core; // the package has one SysTick: it is that of core 0
    clock.tick(0);
    if (chip.core.pendingSystick) chip.core.waiting = false;
}

function fault(core, pc) {
    const text = `${faults.trouble}, by the instruction at ${hex(pc)}`;
    faults.trouble = null;
    if (core.IPSR === HARD_FAULT) give_up(`locked up: ${text}`);
    core.PC = pc;
    core.waiting = false;
    core.exceptionEntry(HARD_FAULT);
    gdb?.fault();
    if (faults.trouble !== null) give_up(`locked up: ${faults.trouble} after ${text}`);
}

/* The cores that the model runs on; core 1 of an application goes its own way. */
const model_cores = about.app ? cores.slice(0, 1) : cores;

function begin_call() {
    for (const watched of model_cores) {
        watched.clock = cores[0].clock;
        watched.begin();
    }
}

/* What core 1 has still to do until it waits again is part of the call. */
function end_call(pc) {
    if (pc !== cores[0].end) cores[0].arrive(pc);
    cores[0].finish();
    while (model_cores.length > 1 && !cores[1].core.waiting) step(cores[1]);
    model_cores[1]?.finish();
    chip.core = cores[0].core;
    calls.instructions.push(cores[0].took.path);
    calls.cycles.push(cores[0].took.cycles);
    if (calls.cycles.length > CALL_ROOM) Object.values(calls).forEach((each) => each.shift());
    const told = {
        ...calls,
        flash: flash.continuous ? 'EBh' : '03h',
        cores: model_cores.map(({ took }) => took),
        rows: model_cores.flatMap(({ rows }) => rows),
    };
    const text = Buffer.from(JSON.stringify(told));
    ftruncateSync(about.counts, 0);
    writeSync(about.counts, text, 0, text.length, 0);
}

/* The core whose clock is behind; null if none can run. */
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

/* 0 if it continues, else for how many milliseconds it waits: until a byte arrives, or a timer rings. Shorter sleep, such as
 * that for a packet of USB, takes no time here. `slept` is how many nanoseconds it has just slept. */
function run_slice(slept) {
    feed();
    for (let i = 0; i < SLICE; i++) {
        const next = next_core();
        if (gdb?.stops(next)) return 0;
        if (next !== null) {
            step(next);
            continue;
        }
        feed();
        if (next_core() !== null) continue;
        if (!clock.nextAlarm) return Infinity;
        const nanos = Math.max(0, clock.nanosToNextAlarm);
        if (nanos >= PACED && nanos > 1.001 * slept) return nanos / 1e6;
        pass(nanos);
        cycles += Math.ceil(nanos / nanos_per_cycle);
        slept = 0;
    }
    return 0;
}

// Boot

function boot() {
    chip.clkSys = chip.roscFreq;
    nanos_per_cycle = 1e9 / chip.clkSys;
    chip.sram.fill(0xa5); // it holds nothing useful after power-up
    chip.sram.set(flash.contents.subarray(0, BOOT2_BYTES), BOOT2 - RAM);
    const { core } = cores[0];
    [core.SP, core.LR, core.PC] = [BOOT2, 0, BOOT2];
}

let on_input = () => {};
process.stdin.on('data', (data) => {
    line.input = Buffer.concat([line.input, data]);
    on_input();
});
process.stdin.on('end', () => process.exit(0));
process.on('exit', send); // the output of the image before its end

/* Waits until there is more input, or until a number of milliseconds have passed: then true. */
function sleep(milliseconds) {
    return new Promise((resolve) => {
        const timer = milliseconds === Infinity ? null : setTimeout(() => resolve(true), milliseconds);
        on_input = () => {
            clearTimeout(timer);
            resolve(false);
        };
    });
}

if (attached?.camera) attach_camera();
if (attached?.display) attach_display();
boot();
if (gdb) gdb.on_interrupt = () => on_input();
for (let slept = 0;;) {
    if (gdb?.halted) await gdb.released;
    const wait = run_slice(slept);
    send();
    if (wait === 0) await new Promise(setImmediate);
    slept = wait > 0 && await sleep(wait) ? wait * 1e6 : 0;
}
