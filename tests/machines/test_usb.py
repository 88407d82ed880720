"""The console over USB: the driver in C on both chips' emulated controllers, against a strict host."""

from __future__ import annotations

import random

import pytest

from baretorch.machines.frames import RUN as RUN_FRAME
from baretorch.machines.frames import Frame, encode_frame
from baretorch.machines.link import Link
from baretorch.machines.types import DeviceFault, DeviceHang
from baretorch.machines.unicorn.boot_rom import Restarted
from baretorch.machines.unicorn.device import Stopped
from baretorch.machines.unicorn.exceptions import EXCEPTIONS, enter
from baretorch.machines.unicorn.flash_chip import OTHERS, FlashKind
from baretorch.machines.unicorn.machine import UnicornMachine
from baretorch.machines.unicorn.usb.bus import Handshake, HostError
from baretorch.machines.unicorn.usb.controller import DPRAM_BYTES, Surroundings, UsbController
from baretorch.machines.unicorn.usb.host import (
    CONFIGURATION,
    DEVICE,
    SET_LINE_CODING,
    STRING,
    SetupPacket,
    Steps,
    UsbHost,
    get_descriptor,
    like_linux,
    line_coding,
    read_string,
    set_configuration,
    set_lines,
)
from baretorch.options import Console
from tests.machines.descriptors import check_descriptors
from tests.machines.images import RUN, TWO_CORES, image
from tests.machines.usb import (
    DATA,
    Chaos,
    Recorder,
    answers,
    clear_halt,
    cleared,
    drive,
    each_chip,
    in_chaos,
    is_armed,
    is_refused,
    like_windows,
    over_usb,
    port,
    set_halt,
    up,
)

HARD_FAULT = 3  # exception number
LONG = """\
void __attribute__((noinline)) toy_run(const void *from, void *to)
{
    const uint8_t *x = from;
    uint8_t *y = to;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 200000; i++) {
        sum = 31 * sum + x[i % INPUT_BYTES];
    }
    for (uint32_t i = 0; i < OUTPUT_BYTES; i++) {
        y[i] = (uint8_t)(sum >> i);
    }
}
"""


MANY = """\
void __attribute__((noinline)) toy_run(const void *from, void *to)
{
    (void)from;
    for (uint32_t i = 0; i < OUTPUT_BYTES; i++) {
        ((uint8_t *)to)[i] = (uint8_t)i;
    }
}
"""


# --- coming up -------------------------------------------------------------------------------------------------------


@each_chip
@pytest.mark.parametrize("script", [like_linux, like_windows])
def test_comes_up_and_answers(board: str, script: object) -> None:
    machine = over_usb(board)
    controller, _ = port(machine)
    assert machine.usb is not None
    machine.usb.host = UsbHost(controller, script)  # type: ignore[arg-type]
    assert answers(machine)
    assert machine.usb.host.retries == 0


@pytest.mark.parametrize(("board", "number"), [("pico", "0123456789ABCDEF"), ("pico2", "FEDCBA9876543210")])
def test_it_describes_itself(board: str, number: str) -> None:
    """And which one: what an RP2040's flash chip says, and what an RP2350 knows itself, written as by the vendor."""
    flash = FlashKind(number=bytes.fromhex(number))
    otp = {"OTP_DATA.CHIPID01": 0x76543210, "OTP_DATA.CHIPID23": 0xFEDCBA98} if board == "pico2" else None
    machine = UnicornMachine(image(board, console=Console.USB), RUN, otp, flash=flash)
    host = up(machine)
    device = drive(machine, host.control(get_descriptor(DEVICE, 0, 18)))
    assert device[8:12] == (0x2E8A).to_bytes(2, "little") + (0x000A).to_bytes(2, "little"), "vendor and product"
    check_descriptors(device, drive(machine, host.control(get_descriptor(CONFIGURATION, 0, 255))))
    assert list(device[14:17]) == [1, 2, 3]
    texts = [read_string(drive(machine, host.control(get_descriptor(STRING, n, 255, 0x409)))) for n in (1, 2, 3)]
    assert texts == ["Baretorch", board, number]


@pytest.mark.parametrize(
    ("board", "left", "flash"),
    [
        ("pico", {}, FlashKind(others=OTHERS - {0x4B})),
        ("pico", {}, FlashKind(number=bytes(8))),
        ("pico2", {"OTP_DATA.CHIPID01": 0, "OTP_DATA.CHIPID23": 0}, FlashKind()),
        ("pico2", {"OTP_DATA.CHIPID01": 0xFFFFFFFF, "OTP_DATA.CHIPID23": 0xFFFFFFFF}, FlashKind()),
    ],
)
def test_no_number_is_better_than_that_of_others(board: str, left: dict[str, int], flash: FlashKind) -> None:
    machine = UnicornMachine(image(board, console=Console.USB), RUN, left, flash=flash)
    host = up(machine)
    assert list(drive(machine, host.control(get_descriptor(DEVICE, 0, 18)))[14:17]) == [1, 2, 0]
    assert drive(machine, is_refused(host, get_descriptor(STRING, 3, 255, 0x409)))
    assert answers(machine)


@each_chip
def test_first_chips(board: str) -> None:
    """RP2040 B0 and B1 come back from a reset only if their line is forced (E5), and give no buffers back (E2)."""
    left = {"SYSINFO.CHIP_ID": 0x10002927, "RESETS.RESET": 0x01F7FDBF, "RESETS.RESET_DONE": 0x00080240}
    left = left if board == "pico" else {}
    machine = UnicornMachine(image(board, console=Console.USB), RUN, left)
    controller, host = port(machine)
    assert controller.first_chips == (board == "pico")
    assert answers(machine)
    host.reset()
    assert answers(machine)


def test_the_version_can_be_read() -> None:
    """The boot ROM leaves the register in reset, and 0 would mean one of the first chips."""
    machine = over_usb("pico")
    up(machine)
    assert machine._wiring is not None and machine._wiring.model.read("SYSINFO.CHIP_ID") >> 28 == 2


def test_nothing_is_heard_without_its_clock() -> None:
    machine = over_usb("pico")
    controller, _ = port(machine)
    assert machine._wiring is not None and machine.usb is not None
    up(machine)
    machine._wiring.model.values["PLL_USB.FBDIV"] = 99
    machine._wiring.version += 1
    assert any("clk_usb = 48,000,000" in text for text in controller.missing())
    with pytest.raises(DeviceHang) as raised:
        while True:
            machine.read(1)
    assert "no device is on the bus" in raised.value.have


# --- data ------------------------------------------------------------------------------------------------------------


@each_chip
@pytest.mark.parametrize("endpoint", [0x02, 0x82])
def test_halt(board: str, endpoint: int) -> None:
    """A halted endpoint says so until it is cleared, begins with DATA0 then, and has lost nothing."""
    machine = over_usb(board)
    host = up(machine)
    assert answers(machine)

    def halted() -> Steps[list[object]]:
        yield from host.control(set_halt(endpoint))
        seen: list[object] = [(yield from host.control(SetupPacket(0x82, 0, 0, endpoint, 2)))]
        bus, address = host.bus, host.address
        seen.append((bus.take(address, 2) if endpoint & 0x80 else bus.out(address, 2, 0, b"x")).kind)
        yield from host.control(clear_halt(endpoint))
        cleared(host, endpoint)
        seen.append((yield from host.control(SetupPacket(0x82, 0, 0, endpoint, 2))))
        return seen

    assert drive(machine, halted()) == [b"\1\0", Handshake.STALL, b"\0\0"]
    assert answers(machine)


def test_cleared_while_a_packet_waits() -> None:
    """Hosts clear endpoints that are not halted, to begin with DATA0: the packet that waits goes again, once."""
    machine = over_usb("pico", inputs=150, outputs=150)
    link = Link(machine)
    link.hello()
    controller, host = port(machine)
    times = []

    def clear() -> Steps[None]:
        while True:
            while not is_armed(controller, 0x82):
                yield host.data_step()
            yield from host.control(clear_halt(0x82))
            cleared(host, 0x82)
            times.append(True)
            yield host.data_step()

    host.do(clear())
    data = bytes(range(150))
    assert link.run([data]).outputs == (data[::-1],)
    assert len(times) > 2 and len(machine.instructions()) == 1


@pytest.mark.parametrize("request_", [clear_halt(0x82), set_configuration(1)])
def test_cleared_late_in_a_frame(request_: SetupPacket) -> None:
    """Where the RP2040 hands nothing over (E15): the packet that waited goes in the next frame."""
    machine = over_usb("pico", inputs=150, outputs=150)
    link = Link(machine)
    link.hello()
    controller, host = port(machine)

    def clear() -> Steps[None]:
        while not is_armed(controller, 0x82):
            yield host.data_step()
        while not 800 <= controller._around.microseconds() % 1000 < 900:
            yield True
        yield from host.control(request_)
        for endpoint in (0x82, 2) if request_ == set_configuration(1) else (0x82,):
            cleared(host, endpoint)

    host.do(clear())
    data = bytes(range(150))
    assert link.run([data]).outputs == (data[::-1],)
    assert not host.busy


def test_a_packet_that_comes_twice_is_taken_once() -> None:
    """Its ACK was lost."""
    machine = over_usb("pico")
    link = Link(machine)
    link.hello()
    host = up(machine)

    def twice() -> Steps[None]:
        frame = b"\0" * 64
        toggle = host._toggles.get(2, 0)
        while host.bus.out(host.address, 2, toggle, frame).kind is not Handshake.ACK:
            yield False
        yield True
        while host.bus.out(host.address, 2, toggle, frame).kind is not Handshake.ACK:
            yield False
        yield True
        host._toggles[2] = toggle ^ 1

    controller, _ = port(machine)
    before = controller.done
    drive(machine, twice())
    assert controller.done == before + 1
    assert answers(machine)


@pytest.mark.parametrize(
    ("board", "outputs", "packets"),
    [("pico2", 45, [1, 64, 0]), ("pico2", 500, [1, *[64] * 8, 7]), ("pico", 44, [64, 0])],
)
def test_no_message_ends_with_a_full_packet(board: str, outputs: int, packets: list[int]) -> None:
    """A host waits for more after one: an empty packet says that there is none. On the RP2040 the first waits for
    a frame, and more comes together meanwhile, unless the frame begins just then."""
    body = "void __attribute__((noinline)) toy_run(const void *x, void *y) { *(volatile char *)y = *(const char *)x; }"
    for later in range(0, 200, 40):
        found = _lengths(over_usb(board, body, outputs=outputs), later)
        assert sum(found) == sum(packets) and found[-1] < 64
        if found == packets:
            break
    assert found == packets


def _lengths(machine: UnicornMachine, later: int) -> list[int]:
    """Return the lengths of the packets of a model's answer, if it is requested `later` steps of the host later."""
    host = up(machine)
    recorder = host.bus = Recorder(port(machine)[0])

    def ask_and_wait() -> Steps[None]:
        yield from (True for _ in range(later))
        while not host.send_packet(2, encode_frame(Frame(RUN_FRAME, 1, DATA))):
            yield True
        yield from (True for _ in range(50))  # all of the answer waits then, behind its first byte

    drive(machine, ask_and_wait())
    with pytest.raises(DeviceHang):
        while True:
            machine.read(1)
    return list(map(len, recorder.sent))


def test_output_before_a_host_listens() -> None:
    heard: list[str] = []
    Link(over_usb("pico"), heard.append).hello()
    assert heard == ["baretorch: toy on pico, ready\n"]


def test_unread_output_is_dropped() -> None:
    """Output is dropped if the port is closed, and a full ring does not block a core that runs alone."""
    machine = over_usb("pico", outputs=3000, body=MANY)
    link = Link(machine)
    link.hello()
    host = up(machine)

    def ask_and_close() -> Steps[None]:
        for lines in (0, 3):
            while not host.send_packet(2, encode_frame(Frame(RUN_FRAME, 1, DATA))):
                yield True
            yield from (True for _ in range(40))
            yield from host.control(set_lines(lines))

    drive(machine, ask_and_close())
    assert len(machine.instructions()) == 2, "it went on while the port was closed"
    assert Link(machine).run([DATA]).outputs == (bytes(range(256)) * 11 + bytes(range(184)),)


@each_chip
def test_who_opens_the_port_gets_nothing_old(board: str) -> None:
    """A packet that waits when the port is closed is taken back, and the next is not taken for its repetition."""
    machine = over_usb(board, outputs=300, body=MANY)
    link = Link(machine)
    link.hello()
    controller, host = port(machine)

    def ask_and_close() -> Steps[bool]:
        while not host.send_packet(2, encode_frame(Frame(RUN_FRAME, 1, DATA))):
            yield True
        yield from (True for _ in range(40))
        waits = is_armed(controller, 0x82)
        yield from host.control(set_lines(0))
        assert not is_armed(controller, 0x82)
        yield from host.control(set_lines(3))
        return waits

    assert drive(machine, ask_and_close())
    assert host.received == b""
    assert Link(machine).run([DATA]).outputs == (bytes(range(256)) + bytes(range(44)),)


class Unopened(UsbHost):
    """A computer on which no program opens the port."""

    def control(self, request: SetupPacket, data: bytes = b"", packets: int | None = None) -> Steps[bytes]:
        if request == set_lines(3):
            return b""
        return (yield from super().control(request, data, packets))


@each_chip
def test_a_reset_closes_the_port(board: str) -> None:
    """A process that had the port open must open it again; until then the device waits for no room."""
    machine = over_usb(board, outputs=3000, body=MANY)
    link = Link(machine)
    link.hello()
    assert machine.usb is not None
    machine.usb.host = host = Unopened(port(machine)[0])
    host.reset()

    def ask() -> Steps[None]:
        for _ in range(2):
            while not host.send_packet(2, encode_frame(Frame(RUN_FRAME, 1, DATA))):
                yield True
            yield from (True for _ in range(40))

    drive(machine, ask())
    assert len(machine.instructions()) == 2, "it went on while the port was closed"


def test_late_in_a_frame_the_rp2040_takes_no_data() -> None:
    """E15, and what its emulation says to that."""
    now = [799.0]
    memory = memoryview(bytearray(DPRAM_BYTES))
    around = Surroundings(lambda: True, list, lambda: now[0])
    for version in (2, None):
        controller = UsbController(memory, around, version=version)
        for at, value in ((0x40, 1), (0x74, 9), (0x78, 0xC), (0x4C, 1 << 16)):
            controller.write(at, value)
        memory[0x10:0x14] = (1 << 31 | 2 << 26 | 0x180).to_bytes(4, "little")
        for now[0] in (1799.0, 1800.0):
            memory[0x90:0x94] = (0x8000 | 0x400).to_bytes(4, "little")
            if version is not None and now[0] == 1800.0:
                with pytest.raises(Stopped, match="late in a frame"):
                    controller.memory_written(0x90, 0x8000, 10 * now[0])
            else:
                controller.memory_written(0x90, 0x8000, 10 * now[0])


def test_answers_begin_anywhere_in_a_frame() -> None:
    """The RP2040's driver hands nothing over late in one, however long the model took."""
    machine = over_usb("pico", LONG.replace("i < 200000", "i < 5000u * x[0]"), outputs=3000)
    link = Link(machine)
    for n in range(4):
        x = bytes([n]) + DATA[1:]
        total = 0
        for i in range(5000 * n):
            total = (31 * total + x[i % len(x)]) & 0xFFFFFFFF
        (y,) = link.run([x]).outputs
        assert len(y) == 3000 and y[:16] == bytes((total >> i) & 0xFF for i in range(16))


# --- trouble ---------------------------------------------------------------------------------------------------------


class ResetAt(UsbHost):
    """A host that resets the device in step number `after`."""

    after = 0

    def step(self) -> bool:
        self.after -= 1
        if self.after == 0:
            self.reset()
        return super().step()


@each_chip
def test_reset_at_any_time(board: str) -> None:
    """The device is reset after each n-th step, while it starts and while it transfers."""
    machine = over_usb(board)
    controller, _ = port(machine)
    assert machine.usb is not None
    machine.usb.host = host = ResetAt(controller)
    for after in range(1, 130, 12):
        host.reset()
        host.after = after
        assert answers(machine)
        assert host.after < 0


def test_suspended_and_resumed() -> None:
    machine = over_usb("pico")
    link = Link(machine)
    link.hello()
    _, host = port(machine)
    host.suspend()
    machine.write(b"\0" * 64)
    with pytest.raises(DeviceHang):
        machine.read(1)
    host.resume()
    assert link.run([DATA]).outputs == (DATA[::-1],)


def chaos(board: str, frames: int, seed: int, resets: int) -> Chaos:
    """Send `frames` of changing size on a bus on which every kind of fault occurs."""
    machine = over_usb(board, inputs=150, outputs=150)
    controller, _ = port(machine)
    host = Chaos(controller, seed, lost=20, naks=50, resets=resets, suspends=200)
    machine = in_chaos(machine, host)
    machine.name = "serial"  # so that what a reset damaged is sent again
    link = Link(machine)
    numbers = random.Random(seed)
    for _ in range(frames):
        data = numbers.randbytes(150)
        assert link.run([data]).outputs == (data[::-1],)
    return host


@each_chip
def test_nothing_is_lost_on_a_bad_bus(board: str) -> None:
    """If there are no resets, the host repeats lost packets, and no frame has to be sent twice."""
    machine = over_usb(board, inputs=150, outputs=150)
    controller, _ = port(machine)
    host = Chaos(controller, 1, lost=30, naks=100, resets=0, suspends=2000)
    machine = in_chaos(machine, host)
    link = Link(machine)  # of an emulator: silence is an error
    link.hello()
    numbers = random.Random(2)
    for n in range(60):
        data = numbers.randbytes(150)
        assert link.run([data]).outputs == (data[::-1],)
        assert len(machine.instructions()) == n + 1, "a frame was sent again"
    assert host.noise.faults > 50 and host.suspends > 3 and host.retries > 20


@each_chip
def test_frames_with_resets(board: str) -> None:
    host = chaos(board, 30, seed=3, resets=2500)
    assert host.resets > 3 and host.noise.faults > 50


@pytest.mark.slow
@each_chip
def test_ten_thousand_frames(board: str) -> None:
    host = chaos(board, 10_000, seed=4, resets=50)
    assert host.resets > 30 and host.suspends > 100 and host.noise.faults > 10_000


# --- while the model runs --------------------------------------------------------------------------------------------


@each_chip
def test_the_host_is_answered_while_the_model_runs(board: str) -> None:
    """And that changes neither what the model answers nor what it is said to take."""
    quiet = UnicornMachine(image(board, LONG), RUN)
    expected = Link(quiet).run([DATA])
    machine = over_usb(board, LONG)
    link = Link(machine)
    link.hello()
    _, host = port(machine)
    state = machine._cores[0].state
    asked: list[int] = []

    def ask() -> Steps[None]:
        while True:
            yield from host.control(get_descriptor(DEVICE, 0, 18))
            if state.running:
                asked.append(state.handled)
            yield host.data_step()
            yield host.data_step()

    host.do(ask())
    reply = link.run([DATA])
    assert reply.outputs == expected.outputs
    assert machine.instructions() == quiet.instructions()
    assert len(asked) > 3 and asked[-1] > asked[0], "interrupts were handled during the run"
    kinds = [[(b.instructions, b.executed, b.taken) for b in one.blocks()] for one in (machine, quiet)]
    assert kinds[0] == kinds[1]


def test_two_cores_over_usb() -> None:
    made = image("pico", TWO_CORES, inputs=64, outputs=64, cores=2)
    quiet = UnicornMachine(made, RUN)
    data = bytes(range(64))
    machine = over_usb("pico", TWO_CORES, inputs=64, outputs=64, cores=2)
    expected, answered = ([link.run([data]).outputs for _ in range(2)] for link in (Link(quiet), Link(machine)))
    assert answered == expected
    assert machine.instructions()[1:] == quiet.instructions()[1:], "at first core 1 may be late"


# --- 1,200 baud ------------------------------------------------------------------------------------------------------


@each_chip
def test_1200_baud_restarts_into_the_boot_loader(board: str) -> None:
    machine = over_usb(board)
    host = up(machine)
    drive(machine, host.control(SET_LINE_CODING, line_coding(12_000)))
    assert answers(machine)
    with pytest.raises(Restarted):
        drive(machine, host.control(SET_LINE_CODING, line_coding(1200)))
    assert not is_armed(port(machine)[0], 0x80), "after the status was sent"


def test_1200_baud_while_the_model_runs() -> None:
    body = LONG.replace("200000", "2000000000")
    machine = over_usb("pico", body)
    link = Link(machine)
    link.hello()
    _, host = port(machine)

    def later() -> Steps[None]:
        while not machine._cores[0].state.running:
            yield host.data_step()
        yield from host.control(SET_LINE_CODING, line_coding(1200))

    host.do(later())
    with pytest.raises(Restarted):
        link.run([DATA])


# --- after a fault ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("board", "irq"), [("pico", None), ("pico2", None), ("pico", 5), ("pico2", 14)])
def test_a_fault_is_reported_and_the_port_stays_alive(board: str, irq: int | None) -> None:
    """No interrupt is taken in the fault handler, which serves USB itself: the text arrives, and so does 1,200 baud.
    So it is if USB's own handler faults."""
    machine = over_usb(board)
    link = Link(machine)
    link.hello()
    _, host = port(machine)
    core = machine._cores[0]
    core.state.dozing, core.state.handling = 0, 1
    for number in ([] if irq is None else [irq]) + [HARD_FAULT - EXCEPTIONS]:
        core.pc = enter(core.uc, number, core.pc, core.state.kept[0], core._chip.cpu.has_fpu)
    heard = b""
    while b"END OF FAULT" not in heard:
        heard += machine.read(20)
    assert b"FAULT: " in heard and b"pc 0x1000" in heard
    with pytest.raises(Restarted):
        drive(machine, host.control(SET_LINE_CODING, line_coding(1200)))


# --- a host that is strict -------------------------------------------------------------------------------------------


def test_a_device_that_breaks_rules_is_reported() -> None:
    machine = over_usb("pico")
    _, host = port(machine)

    def wrong() -> Steps[None]:
        yield from host.expect_stall(get_descriptor(DEVICE, 0, 18))

    with pytest.raises(DeviceFault, match="should be refused"):
        drive(machine, wrong())
    assert isinstance(machine.usb and machine.usb.error, HostError)
