/* The chip of the package, and what becomes of its complaints: those of the bus and of the core are faults of the image. */
import { pathToFileURL } from 'node:url';

export const about = JSON.parse(process.argv[2]);
const { RP2040 } = await import(pathToFileURL(about.library).href);

export const FLASH = 0x10000000, FLASH_END = 0x14000000, RAM = 0x20000000;
export const chip = new RP2040();
export const { clock } = chip;
export const faults = { trouble: null }; // what the instruction did that the chip does not do

export function give_up(text) {
    process.stderr.write(`rp2040js: ${text}\n`);
    process.exit(1);
}

export function complain(part, text) {
    if (part !== 'RP2040' && part !== 'CortexM0Core') give_up(`${part}: ${text}`); // what the package lacks
    faults.trouble = faults.trouble ?? text;
}
chip.logger = { debug() {}, info() {}, warn: complain, error: complain };
console.warn = (...words) => complain('SIO', words.join(' '));
chip.onBreak = () => complain('CortexM0Core', 'a breakpoint or an undefined instruction');

export function hex(number) {
    return `0x${(number >>> 0).toString(16).padStart(8, '0')}`;
}
