"""Describe CPUs, chips and boards; read them from TOML; write linker scripts and headers."""
