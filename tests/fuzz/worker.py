"""Read many damaged files in a process of its own, whose memory is measured; run by test_readers.py.

    python -m tests.fuzz.worker <count> <seed> <reader> …

Prints for each reader how many were read and how many refused with a CompileError, and the peak memory in MB at last.
Anything else that a reader raises ends it with a traceback; the file that did it is kept
in the folder for temporary ones.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from baretorch.errors import CompileError
from tests.fuzz.readers import READERS


def main(count: int, seed: int, names: list[str]) -> None:
    if "pt2" not in names:  # torch itself reserves more
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    for name in names:
        reader = READERS[name]
        read = refused = 0
        for i in range(count):
            data = reader.make(random.Random(f"{name} {seed} {i}"))
            began = time.process_time()
            try:
                reader.read(data)
                read += 1
            except CompileError as error:
                assert error.render().startswith("error: ")
                refused += 1
            except BaseException:
                path = Path(tempfile.gettempdir()) / f"fuzz-{name}-{seed}-{i}"
                path.write_bytes(data)
                print(f"{name}, seed {seed}, number {i}: {path}", file=sys.stderr)
                raise
            assert time.process_time() - began < reader.seconds, f"{name}, seed {seed}, number {i} takes too long"
        print(name, read, refused, flush=True)
    print(peak() >> 10)


def peak() -> int:
    """Return the largest memory use of this process in kB. (The value of getrusage begins with that of the parent
    process.)"""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
