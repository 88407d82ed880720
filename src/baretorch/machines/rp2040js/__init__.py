"""Run images on rp2040js, a second emulator of the RP2040, in node."""
