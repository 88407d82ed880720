"""Print what is inside an ExecuTorch program: `python examples/teach/anatomy.py FILE.pte`."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from baretorch.frontends.flatbuffer import Bytes, Table
from baretorch.frontends.pte.schema import HEADER, IDENTIFIER, DelegateCall, KernelCall, Program, PteMethod, TensorValue

SEGMENTS = 4  # the field of the root table that lists the segments


def main(path: str) -> None:
    data = Path(path).read_bytes()
    program = Program(data)
    print(f"{path.rpartition('/')[2]}: {len(data):,} bytes")
    print(f"identifier  {data[4:8].decode()}, root table at byte {int.from_bytes(data[:4], 'little')}")
    magic, _, size, base = HEADER.unpack_from(data, 8)
    print(f"header      {magic.decode()}: program {size:,} bytes, segments from byte {base:,}")
    flatbuffer = Bytes(data, ".pte", IDENTIFIER, "an ExecuTorch program")
    root = Table(flatbuffer, flatbuffer.integer("I", 0))
    for index, segment in enumerate(root.tables(SEGMENTS)):
        print(f"segment {index}   {segment.integer(1, 'Q'):,} bytes at {base + segment.integer(0, 'Q'):,}")
    for name in program.methods:
        print_method(program, program.method(name))


def print_method(program: Program, method: PteMethod) -> None:
    tensors = [v for v in method.values if isinstance(v, TensorValue)]
    print(f"\nmethod {method.name}: {len(method.values)} values, {len(tensors)} of them tensors")
    for role, places in (("input", method.inputs), ("output", method.outputs)):
        print(f"  {role:<9} {', '.join(str(method.values[i]) for i in places)}")
    constants = [t for t in tensors if t.constant]
    print(f"  constants {len(constants)} tensors, {sum(t.bytes for t in constants):,} bytes")
    print(f"  planned   {sum(method.banks):,} bytes of memory for the other tensors")
    print("  instructions")
    calls = Counter(f"{i.operator}.{i.overload}" for i in method.instructions if isinstance(i, KernelCall))
    for operator, count in calls.items():
        print(f"    {count} × {operator}")
    for call in (i for i in method.instructions if isinstance(i, DelegateCall)):
        delegate = method.delegates[call.delegate]
        blob = program.delegate_data(delegate)
        place = "segment" if delegate.in_segment else "blob"
        print(f"    delegate {delegate.backend}: {len(blob):,} bytes in {place} {delegate.index}")


if __name__ == "__main__":
    main(*sys.argv[1:])
