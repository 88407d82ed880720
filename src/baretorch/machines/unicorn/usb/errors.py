"""What a USB host says of a device that does not keep to the rules."""

from __future__ import annotations


class HostError(Exception):
    """The device broke a rule of USB."""
