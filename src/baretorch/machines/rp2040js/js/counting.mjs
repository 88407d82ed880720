/* What a core executes: instructions, and of calls of the run function each stretch of code, as hooks/unicorn.c counts. */
import { RAM, about, chip } from './chip.mjs';

const SEV = 0xbf40;
const BX = 0x4700; // and BLX, with the register's number in bits 3 to 6

/* Code is counted by halfword: first that in flash, then all of RAM. */
const FLASH_PLACES = (about.code[1] - about.code[0]) / 2 + 1;
const PLACES = FLASH_PLACES + chip.sram.length / 2;
const sizes = new Uint8Array(PLACES); // of instructions, 0 where none was executed
export const special = new Uint8Array(PLACES); // what it is
export const SIGNALS = 1, JUMPS = 2; // SEV; BX or BLX

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

/* One core, and what it has executed. */
export class Watched {
    constructor(number, core) {
        this.number = number;
        this.core = core;
        this.other = null;
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
        if (this.other === null) return;
        const meeting = within(pc, about.meets);
        if (meeting && about.meets.includes(pc)) this.phase++;
        if (this.meeting && !meeting) this.clock = Math.max(this.clock, this.other.signalled[this.phase & 1]);
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
