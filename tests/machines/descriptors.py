"""Check a device's descriptors as strictly as a host may."""

from __future__ import annotations

from collections.abc import Iterator

from baretorch.machines.unicorn.usb.bus import PACKET, HostError
from baretorch.machines.unicorn.usb.host import BULK, CONFIGURATION, DEVICE, ENDPOINT

INTERFACE, ASSOCIATION, CLASS = 4, 11, 0x24
ACM, DATA = (2, 2), 10  # class and subclass; class
INTERRUPT = 3


def check_descriptors(device: bytes, configuration: bytes) -> None:
    """Raise HostError if the descriptors contradict each other, or the standards."""
    _check_device(device)
    parts = list(_parts(configuration))
    _check_configuration(configuration, parts)
    endpoints = _endpoints(parts)
    _only(endpoints, 0, 0x80, INTERRUPT)
    _only(endpoints, 1, 0x80, BULK)
    _only(endpoints, 1, 0x00, BULK)


def need(is_so: bool, what: str) -> None:
    if not is_so:
        raise HostError(f"descriptors: {what} is wrong")


def _check_device(data: bytes) -> None:
    need(len(data) == 18 and data[0] == 18 and data[1] == DEVICE, "the device descriptor's head")
    need(data[2:4] == b"\x00\x02", "the version of USB: later ones need more descriptors")
    need(tuple(data[4:7]) == (0xEF, 2, 1), "the device's class: it has an interface association")
    need(data[7] == PACKET, "the size of endpoint 0")
    need(data[17] == 1, "the number of configurations")


def _parts(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = data[at]
        need(2 <= size <= len(data) - at, f"the length at byte {at}")
        yield data[at : at + size]
        at += size


def _check_configuration(data: bytes, parts: list[bytes]) -> None:
    need(parts[0][:2] == bytes([9, CONFIGURATION]), "the configuration's head")
    need(int.from_bytes(data[2:4], "little") == len(data), "the total length")
    need(data[5] >= 1 and data[7] & 0x9F == 0x80, "the configuration's number or attributes")
    interfaces = [part for part in parts if part[1] == INTERFACE]
    need(data[4] == len(interfaces) == 2, "the number of interfaces")
    need([i[2] for i in interfaces] == [0, 1], "the interfaces' numbers")
    need(tuple(interfaces[0][5:7]) == ACM and interfaces[1][5] == DATA, "the interfaces' classes")
    associations = [part for part in parts if part[1] == ASSOCIATION]
    need(len(associations) == 1 and associations[0][2:6] == bytes([0, 2, *ACM]), "the interface association")
    classes = {part[2]: part for part in parts if part[1] == CLASS}
    need(set(classes) == {0, 1, 2, 6}, "the set of class descriptors")
    need(classes[6][3:] == bytes([0, 1]), "the union of interfaces")


def _endpoints(parts: list[bytes]) -> list[tuple[int, int, int]]:
    """Interface, address and kind of each."""
    found: list[tuple[int, int, int]] = []
    interface, told = -1, 0
    for part in parts:
        if part[1] == INTERFACE:
            need(len([e for e in found if e[0] == interface]) == told, f"interface {interface}'s number of endpoints")
            interface, told = part[2], part[4]
        elif part[1] == ENDPOINT:
            need(part[0] == 7, "the length of an endpoint descriptor")
            size = int.from_bytes(part[4:6], "little")
            need(size == PACKET if part[3] == BULK else 0 < size <= PACKET, "an endpoint's packet size")
            found.append((interface, part[2], part[3]))
    need(len([e for e in found if e[0] == interface]) == told, f"interface {interface}'s number of endpoints")
    need(len({address for _, address, _ in found}) == len(found), "an endpoint's address, which is used twice")
    return found


def _only(endpoints: list[tuple[int, int, int]], interface: int, direction: int, kind: int) -> int:
    fitting = [a for i, a, k in endpoints if (i, a & 0x80, k) == (interface, direction, kind)]
    need(len(fitting) == 1 and fitting[0] & 0x0F != 0, f"interface {interface}'s endpoints")
    return fitting[0]
