/* The stream from flash, which the package lacks, and the DMA that takes its words: channel 0, as runtime/dma/ uses it.
 * The copied words arrive when a core checks whether the copy is done. */
import { chip } from './chip.mjs';

const DMA = 0x50000, XIP = 0x14000; // keys of the package
const WRITE_ADDR = 0x4, TRANS_COUNT = 0x8, CTRL = 0xc, STAT = 0x8, STREAM_ADDR = 0x14, STREAM_CTR = 0x18;
const EMPTY = 2;
const DREQ = 37, TREQ = 15;
const stream = { from: 0, words: 0 };
const channel = { to: 0, words: 0, control: 0, busy: false };

chip.peripherals[XIP] = {
    readUint32: (offset) => ({ [STAT]: EMPTY, [STREAM_CTR]: stream.words })[offset] ?? 0,
    writeUint32Atomic(offset, value) {
        if (offset === STREAM_ADDR) stream.from = value >>> 0;
        if (offset === STREAM_CTR) stream.words = value;
    },
};

const dma = chip.peripherals[DMA];
const [read, write] = [dma.readUint32.bind(dma), dma.writeUint32Atomic.bind(dma)];

function finish() {
    const words = Math.min(channel.words, stream.words);
    for (let i = 0; i < words; i++) chip.writeUint32(channel.to + 4 * i, chip.readUint32(stream.from + 4 * i));
    stream.words -= words;
    channel.busy = channel.words > words; // for ever
}

dma.readUint32 = (offset) => {
    if (offset !== CTRL || !channel.control) return read(offset);
    if (channel.busy) finish();
    return channel.control | (channel.busy ? 1 << 24 : 0);
};
dma.writeUint32Atomic = (offset, value, kind) => {
    if (offset === WRITE_ADDR) channel.to = value >>> 0;
    if (offset === TRANS_COUNT) channel.words = value;
    if (offset !== CTRL || (value >>> TREQ & 0x3f) !== DREQ) {
        if (offset === CTRL) channel.control = 0;
        write(offset, value, kind);
        return;
    }
    channel.control = value;
    channel.busy = true;
};
