/* An HM01B0 (hm01b0.mjs) at the pins: registers over I2C, pixels over one data line with PCLK, HREF and VSYNC, at the rate
 * of its registers and of the PWM that is its clock. Pixels come from a file of frames.
 *
 * Differences from version 1.4.1 of the package: I2C takes time; the PWM of the clock is not run, only its
 * registers are read, because two events per clock would take longer than all the rest; a state machine of PIO is stepped
 * by the camera alone, `cycles` times per bit, and only while it is enabled. With `attached.by` 'bytes' not even that is
 * done: each byte goes straight to the FIFO from which DMA takes it, as the program would have put it there. */
import { readFileSync } from 'node:fs';
import { chip, clock, give_up } from './chip.mjs';
import { attached, fails, tell, when_reset } from './attached.mjs';
import { Hm01b0, Refused, SIDE } from './hm01b0.mjs';

const ADDRESS = 0x24, SCENE = SIDE * SIDE;
const CONNECT = 9; // clocks of a byte on the bus

export function attach_camera() {
    const { pins } = attached.camera, frames = readFileSync(attached.camera.frames);
    const [sda, scl, reset, d0, pclk, href, vsync] = ['sda', 'scl', 'reset', 'd0', 'pclk', 'href', 'vsync']
        .map((name) => chip.gpio[pins[name]]);
    const pwm = chip.pwm.channels[pins.mclk >> 1 & 7];
    const machine = chip.pio[0].machines[0];
    const sensor = new Hm01b0();
    const sent = { line: 0, at: 0 };
    let running = false, receives = false;

    /* The firmware does what the sensor's model does not know: the run ends with a reason. */
    function need(act) {
        try {
            return act();
        } catch (error) {
            if (!(error instanceof Refused)) throw error;
            return give_up(`the HM01B0: ${error.message}`);
        }
    }

    // Its clock, and its reset

    pwm.updateEnable = () => {};

    /* Nanoseconds; 0 if it does not run. */
    function clock_period() {
        const on = pwm.csr & 1 && chip.gpio[pins.mclk].functionSelect === 4;
        return on ? (pwm.top + 1) * (pwm.div / 16) * 1e9 / chip.clkSys : 0;
    }
    const is_awake = () => reset.value === 1 && clock_period() > 0 && !fails('unplugged');

    function start_over() {
        sensor.reset();
        running = false;
    }
    reset.addListener((value) => { if (value !== 1) start_over(); });

    // I2C

    const i2c = chip.i2c[0];
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
        const ours = address === ADDRESS && is_awake();
        if (ours && mode !== 1) sensor.begin_write();
        i2c.completeConnect(ours);
    });
    i2c.onWriteByte = (byte) => after_bits(CONNECT, () => {
        const awake = is_awake();
        if (awake) need(() => sensor.take(byte));
        if (sensor.streams && !running) begin();
        running = sensor.streams;
        i2c.completeWrite(awake);
    });
    i2c.onReadByte = () => after_bits(CONNECT, () => {
        sensor.other_chip = fails('other chip');
        i2c.completeRead(is_awake() ? need(() => sensor.give()) : 0xff);
    });
    i2c.onStop = () => after_bits(1, () => i2c.completeStop());
    when_reset(3, () => {
        later.cancel();
        [i2c.state, i2c.busy, i2c.stop, i2c.pendingRestart, i2c.intRaw, i2c.abortSource] = [0, false, false, false, 0, 0];
        i2c.txFIFO.reset();
        i2c.rxFIFO.reset();
    });

    // Frames

    const next = clock.createAlarm(go_on);
    function begin() {
        Object.assign(sent, { line: 0, at: -1 });
        next.schedule(clock_period() * 8 * sensor.shape().clocks);
    }
    const by_pins = attached.camera.by === 'pins';
    const scene = () => Math.floor(sensor.frames / attached.camera.hold) % (frames.length / SCENE);
    let pixels = null, shape = null; // of the frame that is being sent

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
            shape = need(() => sensor.shape());
            pixels = sensor.frame(frames.subarray(scene() * SCENE));
            receives = machine.enabled;
            step_in_the_dark();
            vsync.setInputValue(true);
        }
        if (sent.at === -1) {
            step_in_the_dark();
            href.setInputValue(true);
            sent.at = 0;
        }
        if (sent.at < shape.wide) {
            const byte = pixels[sent.line * shape.wide + sent.at];
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
        const dark = 8 * (shape.clocks - shape.wide);
        if (++sent.line < shape.high) {
            next.schedule(dark * period);
            return;
        }
        vsync.setInputValue(false);
        tell({ frame: sensor.frames & 0xff, scene: scene() });
        sensor.frames++;
        sent.line = 0;
        next.schedule((dark + 8 * shape.clocks * (shape.lines - shape.high)) * period);
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
