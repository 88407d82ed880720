/* The cores, as the chip has them: both, with a mailbox between them, events, interrupts, and faults. */
import { FLASH_END, about, chip, complain, hex } from './chip.mjs';
import { Watched } from './counting.mjs';

const Core = chip.core.constructor;
const MAIL_ROOM = 8;

export const cores = [new Watched(0, chip.core)];
if (about.cores > 1) {
    cores.push(new Watched(1, new Core(chip)));
    [cores[0].other, cores[1].other] = [cores[1], cores[0]];
    cores[1].core.waiting = cores[1].asleep = true; // in its boot ROM
}
for (const { core } of cores) {
    pend_as_the_chip(core);
    fault_as_the_chip(core);
}
chip.setInterrupt = (irq, value) => cores.forEach(({ core }) => core.setInterrupt(irq, value));

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
    core.unpend = (bits) => {
        core.pendingInterrupts &= ~bits | lines;
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

const NVIC_ICPR = 0x280;
const ppb_write = chip.ppb.writeUint32.bind(chip.ppb);
chip.ppb.writeUint32 = (offset, value) => {
    if (offset === NVIC_ICPR) chip.core.unpend(value);
    else ppb_write(offset, value);
};

/* The package does not check alignment, and allows writes to flash. */
function fault_as_the_chip(core) {
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

function is_writable(address, mask) {
    if (address & mask) complain('RP2040', `unaligned write at ${hex(address)}`);
    else if (address >>> 0 < FLASH_END) complain('RP2040', `write to ROM or flash at ${hex(address)}`);
    else return true;
    return false;
}

// Events and the mailbox

const mail = [[], []]; // for each core
const boot_rom = { launched: false, got: [] };

export function signal(from) {
    from.core.eventRegistered = true;
    const { other } = from;
    if (other === null) return;
    if (from.meeting) from.signalled[from.phase & 1] = from.clock;
    if (other.number === 1 && !boot_rom.launched) answer_as_boot_rom();
    else if (other.core.waiting) other.core.waiting = false;
    else other.core.eventRegistered = true;
}

/* 0, 0, 1, vector table, stack pointer, entry: each is returned. The reply to anything else is 0, and the sequence begins
 * again. */
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
