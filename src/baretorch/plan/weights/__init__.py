"""Copy weights to RAM where flash is slow: at start, or by DMA during a run."""
