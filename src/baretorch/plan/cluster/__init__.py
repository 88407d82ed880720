"""Plan for a cluster: tiles of weights and rows, DMA copies, and units that work while cores compute."""
