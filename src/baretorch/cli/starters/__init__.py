"""Model files to start from; `baretorch new` copies one."""
