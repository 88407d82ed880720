"""Model the USB controller of the RP2040 and RP2350, and a strict USB host at the other end of the cable."""
