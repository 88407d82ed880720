"""The state of clocks, resets and supplies of an emulated chip. targets/silicon.py defines its description.

The whole state is recomputed whenever a register is written, or something that takes time ends. Other modules use the
results: how fast the cores run, whether a register responds and with what, and whether memory can be written. Nothing
here is specific to a chip, and nothing takes time after start-up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from baretorch.errors import InternalError
from baretorch.machines.unicorn.device import Stopped
from baretorch.targets.silicon import ChipBlock, Clock, Condition, Factor, RegisterField, Rule, Silicon

ALIASES = (0x0000, 0x1000, 0x2000, 0x3000)  # as it is, toggle, set, clear: of blocks that are atomic
SWITCH_US = 1.0  # for a glitchless selection: some cycles of both clocks
NEVER = math.inf
WHOLE = RegisterField(0, 32)


@dataclass
class _Mux:
    """The current selection of a multiplexer, and the next one with its time."""

    on: int
    to: int
    due: float = NEVER


class ChipModel:
    """The state of a chip, at a time in microseconds since reset."""

    def __init__(
        self,
        silicon: Silicon,
        devices: Sequence[ChipBlock] = (),
        rules: Sequence[Rule] = (),
        left: Mapping[str, int] | None = None,
        watched: Sequence[str] = (),
    ) -> None:
        """Compute the state after reset.

        `devices` and `rules` are those of drivers. `left` are the values that another program has left in registers,
        because a reset of some chips reaches the cores only. `watched` are fields whose changes matter to others.
        """
        self.silicon = silicon
        self._rules = (*silicon.rules, *rules)
        self.now = 0.0
        self.last_write = "reset"
        self._blocks = {block.name: block for block in (*silicon.blocks, *devices)}
        self._registers = {r.name: r for block in self._blocks.values() for r in block.registers}
        self._places = dict(self._all_places())
        self._clocks = {clock.name: clock for clock in silicon.clocks}
        self._fields = dict(self._all_fields())
        self.values = {name: register.reset for name, register in self._registers.items()} | dict(left or {})
        self._unread: dict[str, int] = {}  # values written to registers that must be read back
        self._due: dict[str, float] = {}  # when signals will be set whose condition holds
        self._seen: dict[str, tuple[int, ...]] = {}  # the values of their `restarts`
        self._muxes = {c.name: _Mux(self.number(c.select), self.number(c.select)) for c in silicon.clocks if c.select}
        self._driven = self._hardware_bits()
        self._matters = self._registers_that_matter() | {self._fields[name][0] for name in watched}
        self._dead: set[str] = set()
        self._kept: dict[Rule, tuple[int, ...]] = {}  # the fixed values when the rule last applied
        for name in self._names():
            self._check(name)
        for signal in silicon.signals:
            self._seen[signal.field] = self._restarts(signal.restarts)
            register, field = self._fields[signal.field]
            if signal.when and self.holds(signal.when):  # has held for a long time
                self.values[register] |= field.mask
        self.settle()

    # --- queries by others -------------------------------------------------------------------------------------------

    def places(self) -> Mapping[int, tuple[str, int]]:
        """Return the register at each address, and which of ALIASES the address is."""
        return self._places

    def write(self, address: int, value: int) -> bool:
        """Write a register; return whether that can change anything else."""
        name, alias = self._places[address]
        block = name.split(".")[0]
        if block in self._dead:
            return False
        old = self.read(name)
        new = (value, old ^ value, old | value, old & ~value)[alias]
        driven = self._driven.get(name, 0)
        places = self._unread if self._registers[name].read_back else self.values
        places[name] = (old & driven) | (new & ~driven & 0xFFFFFFFF)
        self.last_write = f"{value:#x} written to {name} ({address:#010x})"
        return name in self._matters

    def read_back(self, address: int) -> None:
        name, _ = self._places[address]
        if name in self._unread:
            driven = self._driven.get(name, 0)
            self.values[name] = (self.values[name] & driven) | (self._unread.pop(name) & ~driven)

    def read(self, name: str) -> int:
        """Return the value that the register reads as."""
        if name.split(".")[0] in self._dead:
            return 0
        driven = self._driven.get(name, 0)
        return (self.values[name] & driven) | (self._unread.get(name, self.values[name]) & ~driven)

    def must_be_read_back(self, name: str) -> bool:
        return self._registers[name].read_back

    def next_change(self) -> float:
        """Return the time of the next pending change."""
        return min((*self._due.values(), *(mux.due for mux in self._muxes.values())), default=NEVER)

    def number(self, name: str) -> int:
        """Return the value of a field or register."""
        register, field = self._fields[name]
        bits = self.values[register] >> field.shift & ((1 << field.bits) - 1)
        return field.means[bits] if field.means else bits

    def hz(self, name: str) -> float:
        """Return the rate of a clock; 0 if it does not run."""
        if not name:
            return 0.0
        clock = self._clocks[name]
        if not self.holds(clock.needs):
            return 0.0
        return self.hz(clock.sources[self._muxes[name].on]) if clock.select else self._product(clock.of)

    def holds(self, conditions: Iterable[Condition]) -> bool:
        return all(map(self._holds, conditions))

    def failing(self, conditions: Iterable[Condition]) -> list[str]:
        """Describe the conditions that do not hold."""
        return [f"{c}, and it {self._how(c)}" for c in conditions if not self._holds(c)]

    def answers(self, block: str) -> bool:
        return block not in self._dead

    def settle(self) -> None:
        """Compute the consequences of the written values and of the time."""
        for _ in range(20):
            if not (self._update_signals() | self._update_selections() | self._update_resets()):
                break
        else:
            raise InternalError(f"silicon/{self.silicon.name}.toml has a circular dependency")
        if not self.hz(self.silicon.cpu):
            raise Stopped("the core's clock stopped", *self._why_dead(self.silicon.cpu))
        for rule in self._rules:
            self._obey(rule)

    # --- how it changes ----------------------------------------------------------------------------------------------

    def _obey(self, rule: Rule) -> None:
        if not self.holds(rule.when):
            self._kept.pop(rule, None)
            return
        broken = [f"rule: {text}" for text in self.failing(rule.needs)]
        now = tuple(map(self.number, rule.fixed))
        before = self._kept.setdefault(rule, now)
        changed = [name for name, a, b in zip(rule.fixed, before, now, strict=True) if a != b]
        broken += [f"rule: {name} must not change" for name in changed]
        if broken:
            raise Stopped(rule.why, *broken, f"source: {rule.source}")

    def _update_signals(self) -> bool:
        changed = False
        for signal in self.silicon.signals:
            register, field = self._fields[signal.field]
            is_set = bool(self.values[register] & field.mask)
            seen, self._seen[signal.field] = self._seen[signal.field], self._restarts(signal.restarts)
            holds = self.holds(signal.when) and register.split(".")[0] not in self._dead
            if not holds or seen != self._seen[signal.field]:
                self._due.pop(signal.field, None)
                self.values[register] &= ~field.mask
                changed |= is_set
                is_set = False
            if holds and not is_set:
                due = self._due.setdefault(signal.field, self.now + self._product(signal.after))
                if due <= self.now:
                    del self._due[signal.field]
                    self.values[register] |= field.mask
                    changed = True
        return changed

    def _update_selections(self) -> bool:
        changed = False
        for name, mux in self._muxes.items():
            clock, selected = self._clocks[name], self.number(self._clocks[name].select)
            if clock.glitchless:
                changed |= self._switch(clock, mux, selected)
            elif selected != mux.on:
                if name in self._all_sources(self.silicon.cpu):
                    raise Stopped(
                        f"the core's clock glitches: {clock.select} changes while it is in use",
                        f"rule: {name} is not a glitchless selection; the core must leave it first",
                        f"source: {clock.source}",
                    )
                self._need_no_device_on(name)
                mux.on = selected
                changed = True
            if clock.shows:
                register, field = self._fields[clock.shows]
                shown = mux.on << field.shift if field is not WHOLE else 1 << mux.on
                self.values[register] = (self.values[register] & ~field.mask) | shown
        return changed

    def _need_no_device_on(self, name: str) -> None:
        for device in filter(None, (self.silicon.uart, self.silicon.usb)):
            if name in self._all_sources(device.clock) and self.hz(device.clock) and self.holds(device.needs):
                raise Stopped(
                    f"a device's clock glitches: {self._clocks[name].select} changes while it is in use",
                    f"rule: {name} is not a glitchless selection; it must be off, or its blocks in reset",
                    f"source: {self._clocks[name].source}",
                )

    def _switch(self, clock: Clock, mux: _Mux, selected: int) -> bool:
        if selected != mux.to:
            mux.to, mux.due = selected, (NEVER if selected == mux.on else self.now + SWITCH_US)
        if mux.to == mux.on or (mux.due > self.now and mux.due != NEVER):
            return False
        new = clock.sources[mux.to]
        if not self.hz(new):
            mux.due = NEVER
            if clock.waits or clock.name not in self._path(self.silicon.cpu):
                return False
            raise Stopped(
                f"the core's clock stopped: {clock.select} selects {new or 'a clock that is not there'}",
                *(f"rule: {text}" for text in self._why_dead(new)),
                f"source: {clock.source}",
            )
        mux.on, mux.due = mux.to, NEVER
        return True

    def _update_resets(self) -> bool:
        """Find blocks that start or stop responding. Those that stop have their reset values afterwards."""
        dead = {block.name for block in self._blocks.values() if not self.holds(block.needs)}
        for name in dead - self._dead:
            for register in self._blocks[name].registers:
                self.values[register.name] = register.reset
        changed, self._dead = dead != self._dead, dead
        return changed

    # --- how it is ---------------------------------------------------------------------------------------------------

    def _holds(self, condition: Condition) -> bool:
        if condition.name in self._clocks:
            is_now = self.hz(condition.name)
            if not condition.compare:
                return is_now > 0
        else:
            is_now = self.number(condition.name)
        match condition.compare:
            case "=":
                return is_now == condition.value
            case "!=":
                return is_now != condition.value
            case ">=":
                return is_now >= condition.value
        return is_now <= condition.value

    def _how(self, condition: Condition) -> str:
        if condition.name in self._clocks:
            hz = self.hz(condition.name)
            return f"runs at {hz:,.0f} Hz" if hz else "does not run"
        return f"is {self.number(condition.name):#x}"

    def _product(self, of: Sequence[Factor]) -> float:
        product = 1.0
        for factor in of:
            if factor.name in self._clocks:
                value = self.hz(factor.name)
            else:
                value = float(factor.name) if factor.name[0].isdigit() else self.number(factor.name)
            value += factor.plus
            if factor.divides and value == 0:
                return 0.0
            product = product / value if factor.divides else product * value
        return product

    def _restarts(self, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(map(self.number, names))

    def _inputs(self, clock: Clock) -> list[str]:
        if clock.select:
            return [clock.sources[self._muxes[clock.name].on]]
        return [factor.name for factor in clock.of if factor.name in self._clocks]

    def _path(self, name: str) -> list[str]:
        """Return a clock, and those that it is derived from."""
        if not name:
            return []
        return [name, *(up for source in self._inputs(self._clocks[name]) for up in self._path(source))]

    def _all_sources(self, name: str) -> set[str]:
        """Return a clock, those that it is derived from, and those that it will be derived from."""
        clock = self._clocks.get(name)
        if clock is None:
            return set()
        sources = self._inputs(clock) + ([clock.sources[self.number(clock.select)]] if clock.glitchless else [])
        return {name}.union(*map(self._all_sources, sources))

    def _why_dead(self, name: str) -> list[str]:
        for clock in (self._clocks[up] for up in reversed(self._path(name))):
            if texts := self.failing(clock.needs):
                return [f"{clock.name} needs {text} ({clock.source})" for text in texts]
        return [f"{name or 'that clock'} has no source"]

    # --- tables that never change ------------------------------------------------------------------------------------

    def _all_places(self) -> Iterable[tuple[int, tuple[str, int]]]:
        for block in self._blocks.values():
            for register in block.registers:
                for alias, offset in enumerate(ALIASES if block.atomic else ALIASES[:1]):
                    yield register.address + offset, (register.name, alias)

    def _all_fields(self) -> Iterable[tuple[str, tuple[str, RegisterField]]]:
        for name, register in self._registers.items():
            yield name, (name, WHOLE)
            yield from ((f"{name}.{key}", (name, field)) for key, field in register.fields.items())

    def _hardware_bits(self) -> dict[str, int]:
        """Return for each register the bits that writes do not change."""
        bits: dict[str, int] = {}
        for name in [s.field for s in self.silicon.signals] + [c.shows for c in self.silicon.clocks if c.shows]:
            register, field = self._fields[name]
            bits[register] = bits.get(register, 0) | field.mask
        return bits

    def _registers_that_matter(self) -> set[str]:
        """Return the registers that more depends on than rules, consoles and counters, which read them when needed."""
        rules = [name for rule in self._rules for name in (*rule.fixed, *(c.name for c in rule.when))]
        names = [*rules, *self._names_of_state()]
        return {self._fields[name][0] for name in names if name in self._fields} | {
            r.name for block in self._blocks.values() if block not in self.silicon.blocks for r in block.registers
        }

    def _names_of_state(self) -> Iterable[str]:
        silicon = self.silicon
        for device in (silicon.uart, silicon.counter, *([silicon.usb] if silicon.usb else [])):
            yield from (c.name for c in (*device.needs, *device.transmits, *device.receives))
            yield device.clock
        for needs in (*silicon.memories.values(), *(block.needs for block in self._blocks.values())):
            yield from (c.name for c in needs)
        for clock in silicon.clocks:
            yield from (c.name for c in clock.needs)
            yield from (factor.name for factor in clock.of)
            yield from (name for name in (clock.select, clock.shows, *clock.sources) if name)
        for signal in silicon.signals:
            yield from (c.name for c in signal.when)
            yield from (signal.field, *signal.restarts, *(factor.name for factor in signal.after))

    def _names(self) -> Iterable[str]:
        """Yield all names in the description."""
        yield from self._names_of_state()
        for rule in self._rules:
            yield from (*rule.fixed, *(c.name for c in (*rule.when, *rule.needs)))

    def _check(self, name: str) -> None:
        if name not in self._fields and name not in self._clocks and not name[0].isdigit():
            raise InternalError(f"silicon/{self.silicon.name}.toml speaks of {name}, which it does not describe")
