"""Run the command line: `python -m baretorch` is `baretorch`."""

import sys

try:
    from baretorch.cli import main

    main()
except KeyboardInterrupt:  # while it was imported
    sys.exit(130)
