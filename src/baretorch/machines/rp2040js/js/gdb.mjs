/* gdb's remote protocol, as gdb_stub.py speaks it for Unicorn. gdb connects to a socket before the first instruction; while a
 * core is stopped, the whole chip waits. */
import { createServer } from 'node:net';
import { FLASH, RAM, about, chip } from './chip.mjs';
import { cores } from './cores.mjs';

const PACKET = 0x1000;
const INTERRUPT = '\x03';
const INTERRUPTED = 2, TRAP = 5, SEGMENT = 11; // signals, as gdb numbers them
const KINDS = { 13: ['sp', 'data_ptr'], 14: ['lr', 'int'], 15: ['pc', 'code_ptr'], 16: ['xpsr', 'int'] };
const REGISTERS = Array.from({ length: 17 }, (_, i) => KINDS[i] ?? [`r${i}`, 'int']);

const DESCRIPTION = '<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd"><target><architecture>arm</architecture>'
    + '<feature name="org.gnu.gdb.arm.m-profile">'
    + REGISTERS.map(([name, type]) => `<reg name="${name}" bitsize="32" type="${type}"/>`).join('') + '</feature></target>';

class Debugger {
    constructor(path) {
        this.breakpoints = new Set();
        this.watched = cores[0]; // the core that gdb examines
        this.stepping = false;
        this.passes = null; // the core that may execute an instruction whatever is there
        this.signal = TRAP; // why it has stopped
        this.asked = 0; // the signal with which the next instruction is to be stopped at
        this.on_interrupt = () => {};
        this.unread = '';
        this.socket = null;
        this.pause();
        const server = createServer((socket) => {
            server.close();
            this.socket = socket;
            socket.on('data', (data) => this.take(data.toString('latin1')));
            socket.on('error', () => {});
            socket.on('close', () => this.leave());
        });
        server.listen(path);
        process.on('exit', () => server.close()); // which removes the socket
    }

    /* `released` is called when gdb lets the chip continue. */
    pause() {
        this.halted = true;
        this.released = new Promise((resolve) => { this.release = resolve; });
    }

    /* Whether the core `next`, if any can run, has to stop before its next instruction; then it does. */
    stops(next) {
        if (this.asked) return this.halt(next ?? this.watched, this.asked);
        if (next === null) return false;
        if (next === this.passes) {
            this.passes = null;
            return false;
        }
        const stepped = this.stepping && next === this.watched;
        return (stepped || this.breakpoints.has(next.core.PC & ~1)) && this.halt(next, TRAP);
    }

    /* The core is in its fault handler. */
    fault() {
        this.asked = SEGMENT;
    }

    halt(watched, signal) {
        [this.watched, this.signal, this.asked, this.stepping] = [watched, signal, 0, false];
        this.pause();
        this.send(this.stopped());
        return true;
    }

    resume(stepping) {
        this.stepping = stepping;
        this.passes = this.watched;
        this.halted = false;
        this.release();
    }

    /* gdb is gone: the image runs as without it. */
    leave() {
        this.breakpoints.clear();
        this.asked = 0;
        this.resume(false);
    }

    stopped() {
        return `S${byte(this.signal)}`;
    }

    take(text) {
        this.unread += text;
        for (;;) {
            const begin = this.unread.indexOf('$'), end = this.unread.indexOf('#', begin);
            const before = begin < 0 ? this.unread : this.unread.slice(0, begin);
            if (before.includes(INTERRUPT) && !this.halted) {
                this.asked = INTERRUPTED;
                this.on_interrupt();
            }
            this.unread = this.unread.slice(before.length);
            if (begin < 0 || end < 0 || this.unread.length < end - begin + 3) return;
            const packet = this.unread.slice(1, end - begin);
            this.unread = this.unread.slice(end - begin + 3);
            this.socket.write('+');
            this.obey(packet);
        }
    }

    obey(packet) {
        if ('csCS'.includes(packet[0])) {
            this.resume('sS'.includes(packet[0]));
        } else if (packet[0] === 'D' || packet[0] === 'k') {
            this.send('OK');
            this.leave();
        } else {
            this.send(this.answer(packet));
        }
    }

    send(text) {
        const sum = [...text].reduce((sum, c) => sum + c.charCodeAt(0), 0);
        this.socket.write(`$${text}#${byte(sum & 0xff)}`);
    }

    /* The reply to a packet that runs nothing; '' for an unknown packet. */
    answer(packet) {
        const [kind, rest] = [packet[0], packet.slice(1)];
        if (packet === '?') return this.stopped();
        if (packet.startsWith('qSupported')) return `PacketSize=${PACKET.toString(16)};qXfer:features:read+`;
        if (packet.startsWith('qXfer:features:read:target.xml:')) return part(DESCRIPTION, packet.split(':').at(-1));
        if (packet === 'qAttached') return '1';
        if (kind === 'H') return 'OK';
        if (kind === 'g') return REGISTERS.map((_, i) => this.read(i)).join('');
        if (kind === 'G') return this.write_all(rest);
        if (kind === 'p') return parseInt(rest, 16) < REGISTERS.length ? this.read(parseInt(rest, 16)) : 'E01';
        if (kind === 'P') return this.write(...rest.split('='));
        if (kind === 'm') return read_memory(...rest.split(','));
        if (kind === 'M') return write_memory(...rest.split(/[,:]/));
        if (/^[Zz][01],/.test(packet)) {
            const address = parseInt(packet.split(',')[1], 16) & ~1;
            if (kind === 'Z') this.breakpoints.add(address);
            else this.breakpoints.delete(address);
            return 'OK';
        }
        return '';
    }

    read(number) {
        const { core } = this.watched;
        return word(number === 16 ? core.xPSR : number === 15 ? core.PC & ~1 : core.registers[number]);
    }

    write(number, text) {
        const at = parseInt(number, 16), value = Buffer.from(text, 'hex').readUInt32LE(0);
        if (at >= REGISTERS.length) return 'E01';
        if (at === 15) this.watched.core.PC = value & ~1;
        else if (at < 15) this.watched.core.registers[at] = value;
        return 'OK'; // flags stay what they are
    }

    write_all(text) {
        REGISTERS.forEach((_, i) => this.write(i.toString(16), text.slice(8 * i, 8 * i + 8)));
        return 'OK';
    }
}

/* The bytes that an address is in, and which of them it is; registers of peripherals would change by being read. */
function memory_at(address) {
    for (const [origin, bytes] of [[RAM, chip.sram], [FLASH, chip.flash]]) {
        if (address >= origin && address < origin + bytes.length) return [bytes, address - origin];
    }
    return null;
}

function read_memory(address, length) {
    const found = memory_at(parseInt(address, 16));
    if (found === null) return 'E01';
    const [bytes, at] = found;
    return Buffer.from(bytes.subarray(at, at + Math.min(parseInt(length, 16), PACKET / 2 - 8))).toString('hex');
}

function write_memory(address, length, data) {
    const found = memory_at(parseInt(address, 16)), values = Buffer.from(data, 'hex');
    if (found === null || found[0] !== chip.sram || found[1] + values.length > chip.sram.length) return 'E01';
    chip.sram.set(values, found[1]);
    return 'OK';
}

function part(text, window) {
    const [offset, length] = window.split(',').map((number) => parseInt(number, 16));
    return (text.length > offset + length ? 'm' : 'l') + text.slice(offset, offset + length);
}

function byte(value) {
    return value.toString(16).padStart(2, '0');
}

function word(value) {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value >>> 0);
    return bytes.toString('hex');
}

export const gdb = about.gdb ? new Debugger(about.gdb) : null;
