"""Model a Cortex-M chip on Unicorn: clocks, resets, flash, console, interrupts, DMA, and a second core."""
