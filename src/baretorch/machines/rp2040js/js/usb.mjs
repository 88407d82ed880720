/* A host that brings the serial port up as computers do. The package's own host makes few requests, and not as computers do;
 * its controller completes transfers at once, without toggles and NAK: machines/unicorn/usb/host.py is the strict one. */
import { chip, clock, give_up } from './chip.mjs';
import { NUMBER } from './flash.mjs';
import { line } from './line.mjs';

const usb = chip.usbCtrl;
const host = { transfer: null, left: [], received: [], status: false, open: false, room: 0, out: 0, in: 0 };

const REQUESTS = [
    { setup: [0x80, 6, 0, 1, 0, 0, 64, 0] }, // the device's descriptor
    { setup: [0x00, 5, 7, 0, 0, 0, 0, 0] }, // its address
    { setup: [0x80, 6, 0, 1, 0, 0, 18, 0] },
    { setup: [0x80, 6, 0, 6, 0, 0, 10, 0], refused: true }, // what it would be at another speed
    { setup: [0x80, 6, 0, 2, 0, 0, 9, 0] }, // its configuration
    { setup: [0x80, 6, 0, 2, 0, 0, 255, 0], then: find_endpoints },
    { setup: [0x80, 6, 0, 3, 0, 0, 255, 0] }, // languages, the product's name, and its number
    { setup: [0x80, 6, 2, 3, 9, 4, 255, 0] },
    { setup: [0x80, 6, 3, 3, 9, 4, 255, 0], then: check_number },
    { setup: [0x00, 9, 1, 0, 0, 0, 0, 0] },
    { setup: [0xa1, 0x21, 0, 0, 0, 0, 7, 0] }, // its line coding, and another
    { setup: [0x21, 0x20, 0, 0, 0, 0, 7, 0], data: [0x00, 0xc2, 0x01, 0x00, 0, 0, 8] },
    { setup: [0x21, 0x22, 3, 0, 0, 0, 0, 0] }, // opened
];
const REQUEST_NANOS = 5e6, STALL = 1 << 11;
const next_request = clock.createAlarm(begin_request);
const patience = clock.createAlarm(() => {
    const stalls = usb.epStallArm & 1 && chip.usbDPRAMView.getUint32(0x80, true) & STALL;
    if (host.transfer.refused && stalls) end_request();
    else give_up(`the USB device ${stalls ? 'refuses' : 'does not answer'} the request ${host.transfer.setup}`);
});

function begin_request() {
    host.transfer = host.left.shift() ?? null;
    [host.received, host.status] = [[], false];
    host.open = host.transfer === null;
    if (host.open) return;
    patience.schedule(REQUEST_NANOS);
    usb.sendSetupPacket(Uint8Array.from(host.transfer.setup));
}

function end_request() {
    patience.cancel();
    host.transfer.then?.(host.received);
    host.transfer = null;
    next_request.schedule(1e5);
}

function check_number(bytes) {
    const text = Buffer.from(bytes.slice(2)).toString('utf16le');
    if (text !== NUMBER.toString('hex').toUpperCase()) give_up(`the USB device says that its number is ${text}`);
}

function find_endpoints(bytes) {
    for (let at = 0; at < bytes.length; at += bytes[at] || bytes.length) {
        if (bytes[at + 1] !== 5 || bytes[at + 3] !== 2) continue; // of bulk endpoints
        if (bytes[at + 2] & 0x80) host.in = bytes[at + 2] & 15;
        else host.out = bytes[at + 2];
    }
}

/* Frames, each of a millisecond, which the package does not report to devices. */
const SOF_RD = 0x48, INTR = 0x8c, INTE = 0x90, FRAME = 1 << 17, FRAME_NANOS = 1e6;
const frames = { noted: 0, due: false };
const next_frame = clock.createAlarm(() => {
    frames.due = false;
    note_frame();
    await_frame();
});

function note_frame() {
    const frame = Math.floor(clock.nanos / FRAME_NANOS);
    if (frame === frames.noted) return;
    frames.noted = frame;
    usb.intRaw |= FRAME;
    usb.checkInterrupts();
}

function await_frame() {
    if (frames.due || !(usb.intEnable & FRAME)) return;
    frames.due = true;
    next_frame.schedule(FRAME_NANOS - clock.nanos % FRAME_NANOS);
}

const [read_usb, write_usb] = [usb.readUint32.bind(usb), usb.writeUint32.bind(usb)];
usb.readUint32 = (offset) => {
    if (offset === INTR) note_frame();
    if (offset === SOF_RD) {
        note_frame();
        usb.intRaw &= ~FRAME;
        usb.checkInterrupts();
        return frames.noted & 0x7ff;
    }
    return read_usb(offset);
};
usb.writeUint32 = (offset, value) => {
    write_usb(offset, value);
    if (offset === INTE) await_frame();
};

export function feed_usb() {
    if (!host.open || host.room === 0 || !line.input.length) return;
    const packet = Uint8Array.from(line.input.subarray(0, host.room));
    line.input = line.input.subarray(packet.length);
    host.room = 0;
    usb.endpointReadDone(host.out, packet);
}
usb.onUSBEnabled = () => usb.resetDevice();
usb.onResetReceived = () => {
    host.left = [...REQUESTS];
    host.open = false;
    next_request.schedule(1e6);
};
usb.onEndpointWrite = (endpoint, packet) => {
    if (endpoint !== 0) {
        if (endpoint === host.in) line.output.push(...packet);
        return;
    }
    if (host.transfer === null) return;
    const { setup } = host.transfer, to_host = setup[0] & 0x80;
    host.received.push(...packet);
    if (!to_host) end_request(); // its status
    else if (packet.length < 64 || host.received.length >= setup[6]) {
        if (!host.status) give_up('the USB device does not await the end of a request');
        usb.endpointReadDone(0, new Uint8Array(0));
        end_request();
    }
};
usb.onEndpointRead = (endpoint, room) => {
    if (endpoint !== 0) host.room = room;
    else if (host.transfer?.data) usb.endpointReadDone(0, Uint8Array.from(host.transfer.data));
    else host.status = true;
};
