"""Model files that `baretorch new` copies."""
