/* An HM01B0 at the pins: registers over I2C, pixels over one data line with PCLK, HREF and VSYNC, at the rate that its
 * registers and the PWM that is its clock give. Pixels come from a file of frames.
 *
 * Ours, because of what version 1.4.1 of the package does: I2C takes time; the PWM of the clock is not run, only its
 * registers are read, because two events per clock would take longer than all the rest; a state machine of PIO is stepped
 * by the camera alone, `cycles` times per bit, and only while it is enabled. With `attached.by` 'bytes' not even that is
 * done: each byte goes straight to the FIFO from which DMA takes it, as the program would have put it there. */
import { readFileSync } from 'node:fs';
import { chip, clock, give_up } from './chip.mjs';
import { attached, fails, tell, when_reset } from './attached.mjs';

const ADDRESS = 0x24, WIDE = 324, HIGH = 324;
const MODEL_HIGH = 0x0000, MODEL_LOW = 0x0001, FRAME_COUNT = 0x0005, MODE = 0x0100, RESET = 0x0103;
const FRAME_LINES = 0x0340, LINE_CLOCKS = 0x0342, INTERFACE = 0x3059, CLOCKS = 0x3060;
const CONNECT = 9; // clocks of a byte on the bus

export function attach_camera() {
    const { pins } = attached.camera, frames = readFileSync(attached.camera.frames);
    const [sda, scl, reset, d0, pclk, href, vsync] = ['sda', 'scl', 'reset', 'd0', 'pclk', 'href', 'vsync']
        .map((name) => chip.gpio[pins[name]]);
    const pwm = chip.pwm.channels[pins.mclk >> 1 & 7];
    const machine = chip.pio[0].machines[0];
    const registers = new Map();
    const sent = { frames: 0, line: 0, at: 0 };
    let running = false, receives = false;

    // Its clock, and its reset

    pwm.updateEnable = () => {};

    /* Nanoseconds; 0 if it does not run. */
    function clock_period() {
        const on = pwm.csr & 1 && chip.gpio[pins.mclk].functionSelect === 4;
        return on ? (pwm.top + 1) * (pwm.div / 16) * 1e9 / chip.clkSys : 0;
    }
    const is_awake = () => reset.value === 1 && clock_period() > 0 && !fails('unplugged');

    function start_over() {
        registers.clear();
        running = false;
    }
    reset.addListener((value) => { if (value !== 1) start_over(); });

    // I2C

    const i2c = chip.i2c[0];
    let number = [], reading = false;
    const later = clock.createAlarm(() => later.act());
    function after_bits(bits, act) {
        later.act = act;
        if (!fails('bus stuck') && !fails('clock stuck')) later.schedule(bits * (i2c.sclLowPeriod + i2c.sclHighPeriod) * 1e9 / chip.clkSys);
    }
    const bus_is_held = clock.createAlarm(look_at_bus);
    function look_at_bus() {
        for (const [pin, held] of [[sda, fails('bus stuck')], [scl, fails('clock stuck')]]) {
            if (pin.rawInputValue === held) pin.setInputValue(!held);
        }
        bus_is_held.schedule(1e6);
    }
    look_at_bus();

    i2c.onStart = () => after_bits(1, () => i2c.completeStart());
    i2c.onConnect = (address, mode) => after_bits(CONNECT, () => {
        reading = mode === 1;
        if (!reading) number = [];
        i2c.completeConnect(address === ADDRESS && is_awake());
    });
    i2c.onWriteByte = (byte) => after_bits(CONNECT, () => {
        if (number.length < 2) {
            number.push(byte);
        } else {
            set_register(number[0] << 8 | number[1], byte);
            count_up();
        }
        i2c.completeWrite(is_awake());
    });
    i2c.onReadByte = () => after_bits(CONNECT, () => {
        const value = get_register(number[0] << 8 | number[1]);
        count_up();
        i2c.completeRead(value);
    });
    i2c.onStop = () => after_bits(1, () => i2c.completeStop());
    when_reset(3, () => {
        later.cancel();
        [i2c.state, i2c.busy, i2c.stop, i2c.pendingRestart, i2c.intRaw, i2c.abortSource] = [0, false, false, false, 0, 0];
        i2c.txFIFO.reset();
        i2c.rxFIFO.reset();
    });

    function count_up() {
        number[1] = number[1] + 1 & 0xff;
    }
    function get_register(which) {
        if (which === MODEL_HIGH) return 0x01;
        if (which === MODEL_LOW) return fails('other chip') ? 0xb1 : 0xb0;
        if (which === FRAME_COUNT) return sent.frames & 0xff;
        return registers.get(which) ?? 0;
    }
    function set_register(which, value) {
        if (which === RESET) {
            start_over();
            return;
        }
        registers.set(which, value);
        if (which === MODE && value === 1 && !running) begin();
        if (which === MODE && value !== 1) running = false;
    }
    const word = (which) => get_register(which) << 8 | get_register(which + 1);

    // Frames

    const next = clock.createAlarm(go_on);
    function begin() {
        if (get_register(INTERFACE) !== 0x22 || get_register(CLOCKS) !== 0x30) {
            give_up('the HM01B0 is modelled with one data line, clock / 8, most significant bit first, gated PCLK only');
        }
        running = true;
        Object.assign(sent, { line: 0, at: -1 });
        next.schedule(clock_period() * 8 * word(LINE_CLOCKS));
    }
    const by_pins = attached.camera.by === 'pins';
    const scene = () => Math.floor(sent.frames / attached.camera.hold) % (frames.length / (WIDE * HIGH));
    let pixels = null;

    /* The next byte, or the end of a line, or the dark lines between frames. */
    function go_on() {
        const period = clock_period();
        if (!running || period === 0 || fails('unplugged') || fails('no frames')) {
            [href, vsync, pclk].forEach((pin) => pin.setInputValue(false));
            receives = false;
            if (running) next.schedule(1e6);
            Object.assign(sent, { line: 0, at: -1 });
            return;
        }
        if (sent.line === 0 && sent.at === -1) {
            pixels = frames.subarray(scene() * WIDE * HIGH);
            receives = machine.enabled;
            step_in_the_dark();
            vsync.setInputValue(true);
        }
        if (sent.at === -1) {
            step_in_the_dark();
            href.setInputValue(true);
            sent.at = 0;
        }
        if (sent.at < WIDE) {
            const byte = pixels[sent.line * WIDE + sent.at];
            if (by_pins) {
                next.schedule(period);
                send_bit(byte >> 7 - bit & 1, period);
                if (++bit === 8) [bit, sent.at] = [0, sent.at + 1];
            } else {
                next.schedule(8 * period);
                if (receives && machine.enabled) send_byte(byte);
                sent.at++;
            }
            return;
        }
        href.setInputValue(false);
        sent.at = -1;
        const dark = 8 * (word(LINE_CLOCKS) - WIDE);
        if (++sent.line < HIGH) {
            next.schedule(dark * period);
            return;
        }
        vsync.setInputValue(false);
        tell({ frame: sent.frames & 0xff, scene: scene() });
        sent.frames++;
        sent.line = 0;
        next.schedule((dark + 8 * word(LINE_CLOCKS) * (word(FRAME_LINES) - HIGH)) * period);
    }

    // The chip's end of the line

    let bit = 0;
    function send_bit(value, period) {
        const cycles = Math.round(period * chip.clkSys / 1e9);
        if (d0.rawInputValue !== (value === 1)) d0.setInputValue(value === 1);
        pclk.setInputValue(true);
        step(cycles >> 1);
        pclk.setInputValue(false);
        step(cycles - (cycles >> 1));
    }
    /* Hundreds of cycles pass between lines, and the program gets as far as it can. */
    function step_in_the_dark() {
        if (by_pins) step(16);
    }
    function step(cycles) {
        for (; cycles > 0 && machine.enabled; cycles--) machine.step();
    }
    function send_byte(byte) {
        receives = !machine.rxFIFO.full; // else the program waits, and misses the rest
        if (!receives) return;
        machine.rxFIFO.push(byte);
        machine.updateDMARx();
    }
    chip.pio.forEach((pio) => { pio.run = () => {}; });
    const restart = machine.restart.bind(machine);
    machine.restart = () => {
        receives = false;
        restart();
    };
    when_reset(10, () => {
        machine.enabled = false;
        machine.restart();
    });
    const d0_bit = 1 << pins.d0;
    Object.defineProperty(machine, 'inPins', { get: () => {
        const values = d0.inputValue ? d0_bit : 0; // the only pin that is read, and all thirty take long
        return values >>> machine.inBase;
    } });
}
