"""`python -m baretorch` is `baretorch`."""

from baretorch.cli import main

main()
