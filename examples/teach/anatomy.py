"""Print what is inside an ExecuTorch program: `python examples/teach/anatomy.py FILE.pte`."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from baretorch.frontends.pte.schema import HEADER, DelegateCall, KernelCall, Program, PteMethod, TensorValue


def main(path: str) -> None:
    data = Path(path).read_bytes()
    program = Program(data)
    print(f"{path.rpartition('/')[2]}: {len(data):,} bytes")
    print(
        f"identifier  {data[4:8].decode()}, the first field of the flatbuffer is at {int.from_bytes(data[:4], 'little')}"
    )
    if data[8:12] == b"eh00":
        _, _, size, base = HEADER.unpack_from(data, 8)
        print(f"header      {data[8:12].decode()}: program {size:,} bytes, segments from byte {base:,}")
    for name in program.methods:
        print_method(program, program.method(name))


def print_method(program: Program, method: PteMethod) -> None:
    tensors = [v for v in method.values if isinstance(v, TensorValue)]
    print(f"\nmethod {method.name}: {len(method.values)} values, {len(tensors)} of them tensors")
    for role, places in (("input", method.inputs), ("output", method.outputs)):
        print(f"  {role:<9} {', '.join(str(method.values[i]) for i in places)}")
    constants = [t for t in tensors if t.constant]
    print(f"  constants {sum(t.bytes for t in constants):,} bytes: {', '.join(map(str, constants)) or 'none'}")
    print(f"  planned   {sum(method.banks):,} bytes of memory for the other tensors")
    print("  operators")
    calls = Counter(f"{i.operator}.{i.overload}" for i in method.instructions if isinstance(i, KernelCall))
    for operator, count in calls.items():
        print(f"    {count} × {operator}")
    for call in (i for i in method.instructions if isinstance(i, DelegateCall)):
        delegate = method.delegates[call.delegate]
        blob = program.delegate_data(delegate)
        place = "segment" if delegate.in_segment else "blob"
        print(f"    delegate {delegate.backend}: {len(blob):,} bytes in {place} {delegate.index}, begin {blob[4:8]!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
