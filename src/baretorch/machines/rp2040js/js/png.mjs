/* A picture file. */
import { deflateSync } from 'node:zlib';

const table = Uint32Array.from({ length: 256 }, (_, n) => {
    for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ n >>> 1 : n >>> 1;
    return n;
});

function chunk(type, data) {
    const body = Buffer.concat([Buffer.from(type, 'latin1'), data]), size = Buffer.alloc(4), sum = Buffer.alloc(4);
    let crc = 0xffffffff;
    for (const byte of body) crc = table[(crc ^ byte) & 255] ^ crc >>> 8;
    size.writeUInt32BE(data.length);
    sum.writeUInt32BE(~crc >>> 0);
    return Buffer.concat([size, body, sum]);
}

/* `colour(x, y)` returns RGB565. */
export function png(wide, high, colour) {
    const rows = Buffer.alloc(high * (1 + 3 * wide)), head = Buffer.alloc(13);
    let at = 0;
    for (let y = 0; y < high; y++) {
        rows[at++] = 0;
        for (let x = 0; x < wide; x++) {
            const c = colour(x, y), [r, g, b] = [c >> 11, c >> 5 & 63, c & 31];
            [rows[at], rows[at + 1], rows[at + 2]] = [r << 3 | r >> 2, g << 2 | g >> 4, b << 3 | b >> 2];
            at += 3;
        }
    }
    head.writeUInt32BE(wide, 0);
    head.writeUInt32BE(high, 4);
    head.set([8, 2, 0, 0, 0], 8); // eight bits, RGB
    const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
    const parts = [chunk('IHDR', head), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))];
    return Buffer.concat([signature, ...parts]);
}
