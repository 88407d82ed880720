/* The devices at the chip's pins: a camera, a display. Their models report events, and fail on request. */
import { writeSync } from 'node:fs';
import { about, chip, clock } from './chip.mjs';

export const attached = about.attached ?? null;

/* Lines of JSON, for the parent process. */
export function tell(event) {
    writeSync(attached.events, `${JSON.stringify({ ...event, ms: clock.nanos / 1e6 })}\n`);
}

/* Whether that fault is there now; `attached.faults` has [what, from, to] in milliseconds. */
export function fails(what) {
    const ms = clock.nanos / 1e6;
    return attached.faults.some(([name, from, to]) => name === what && ms >= from && ms < to);
}

/* The package has no resets of single blocks: those that drivers rely on. */
const on_reset = new Map();
const resets = chip.peripherals[0x4000c], write = resets.writeUint32Atomic.bind(resets);
resets.writeUint32Atomic = (offset, value, type) => {
    if (offset === 0 && type === 2) for (const [bit, act] of on_reset) if (value >>> bit & 1) act();
    write(offset, value, type);
};
export function when_reset(bit, act) {
    on_reset.set(bit, act);
}
