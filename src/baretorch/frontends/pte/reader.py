"""Converts an ExecuTorch `.pte` to an ATen program, without the executorch package.

A `.pte` states which kernels run on which bytes. Memory is reused and views leave no instruction: a tensor
that is never written is a view of whatever was last written to its bytes. So the instructions are followed
over a model of the memory (`PteMemory`), which knows for every range of bytes the value that is in it. That
gives each write a name of its own, brings the views back, and finds a read of bytes that hold no value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten.program import Arg, AtenCall, AtenInput, AtenProgram, AtenState, Ref
from baretorch.frontends.lowering import note_halves
from baretorch.frontends.pte.arguments import keeps_elements, kind_of, padding_of, plain_operator
from baretorch.frontends.pte.memory import Kept, PteMemory, UniqueNames, find_state
from baretorch.frontends.pte.operators import WORKSPACE, find_schema
from baretorch.frontends.pte.schema import (
    DelegateCall,
    Items,
    KernelCall,
    OtherCall,
    Program,
    PteMethod,
    TensorValue,
    Value,
    damaged,
    is_contiguous,
    memory_order,
    order_of,
    same_layout,
)
from baretorch.ir.graph import Array, DType, Shape
from baretorch.npu.payload import SCRATCH, Payload, read_payload
from baretorch.ops.halves import from_half

ETHOS_U = "EthosUBackend"
MAX_STATE = 64 << 20  # bytes; a file without initial values can state any size


def read_pte_methods(data: bytes, name: str, wanted: str | None = None) -> dict[str, AtenProgram]:
    """Return the ATen programs of all methods; methods may share state. Methods that only hold numbers are left out
    with a note. If one is `wanted`, unreadable others are left out too."""
    program = Program(data)
    if wanted is not None:
        program.require(wanted)
    methods = {m: program.method(m) for m in program.methods}
    state = find_state(program, methods)
    read: dict[str, AtenProgram] = {}
    notes = []
    for m, plan in methods.items():
        if m != wanted and _only_numbers(plan):
            notes.append(f"method {m} only holds numbers and is left out")
            continue
        try:
            read[m] = _read(program, plan, name, state)
        except CompileError as error:
            if wanted is None or m == wanted:
                error.at = error.at or ((f"method {m}",) if len(methods) > 1 else ())
                raise
            notes.append(f"method {m} is left out: {error.what}")
    if not read:
        raise CompileError("the program has no method that computes anything", have=", ".join(methods) or None)
    return {m: replace(p, notes=(*p.notes, *notes)) for m, p in read.items()}


def _read(program: Program, plan: PteMethod, name: str, state: Mapping[str, Sequence[Kept]]) -> AtenProgram:
    """Return the ATen program of one method. `state` is that of all methods; its names are reserved."""
    _refuse_later_work(plan)
    reader = _Reader(program, plan, {kept.name for own in state.values() for kept in own})
    inputs = reader.inputs()
    notes = reader.begin(state[plan.name])
    for instruction in plan.instructions:
        if isinstance(instruction, KernelCall):
            reader.call(instruction)
        elif isinstance(instruction, DelegateCall):
            reader.delegate(instruction)
    outputs = [reader.tensor_at(i, "an output") for i in plan.outputs]
    names = tuple(reader.read(t) for t in outputs)
    after = tuple(AtenState(kept.name, reader.read(kept.tensor)) for kept in state[plan.name])
    types = {t.type_name for t in plan.values if isinstance(t, TensorValue)}
    return AtenProgram(
        name,
        inputs,
        reader.constants,
        _forget_unread(reader.calls, (*names, *(s.next for s in after))),
        names,
        tuple(memory_order(t.shape, t.order) for t in outputs),
        after,
        notes=(*notes, *reader.notes, *note_halves(types)),
        halves=tuple(t.dtype if t.dtype.is_half else None for t in outputs),
    )


def _only_numbers(plan: PteMethod) -> bool:
    """Report whether a method is one of ExecuTorch's constant methods, which describe the model."""
    tensors = {v.index for v in plan.values if isinstance(v, TensorValue)}
    return not plan.instructions and tensors.isdisjoint(plan.outputs)


def _refuse_later_work(plan: PteMethod) -> None:
    """Raise CompileError for valid content of a `.pte` that Baretorch does not support, with names and counts."""
    kinds = Counter(i.kind for i in plan.instructions if isinstance(i, OtherCall))
    others = Counter(d.backend for d in plan.delegates if d.backend != ETHOS_U)
    if others:
        raise CompileError(
            f"the program calls {_count(others.total(), 'delegate')}, which only ExecuTorch can run",
            have=", ".join(f"{n} × {backend}" for backend, n in others.items()),
            need="a program of ATen operators, or delegates for an Ethos-U",
            try_="export it without a partitioner",
        )
    if kinds["JumpFalseCall"] or kinds["MoveCall"]:
        raise CompileError(
            "control flow is not supported",
            have=f"{_count(kinds['JumpFalseCall'], 'jump')} and {_count(kinds['MoveCall'], 'move')} in {plan.name}",
            try_="remove torch.cond, while_loop and scan from the model",
        )
    dynamic = [v for v in plan.values if isinstance(v, TensorValue) and v.dynamic]
    if dynamic:
        raise CompileError(
            f"dynamic shapes are not supported: {_count(len(dynamic), 'tensor')}",
            have=[f"up to {t}" for t in dynamic[:4]],
            need="one fixed shape for every tensor",
            try_="export without dynamic_shapes",
        )


class _Reader:
    """Follows the instructions of one method and collects calls and constants."""

    def __init__(self, program: Program, plan: PteMethod, reserved: set[str]) -> None:
        self.calls: list[AtenCall] = []
        self.constants: dict[str, Array] = {}
        self.notes: list[str] = []
        self._program = program
        self._plan = plan
        self._inputs = set(plan.inputs)
        self._memory = PteMemory(plan.banks)
        self._names = UniqueNames(reserved)
        self._same: dict[int, int] = {}  # tensors that are another one
        self._views: dict[tuple[str, int], str] = {}  # by the name of the viewed value, and the tensor that views it
        self._constant_names: dict[tuple[object, ...], str] = {}

    def inputs(self) -> tuple[AtenInput, ...]:
        made = []
        for index in self._plan.inputs:
            t = self.tensor_at(index, "an input")
            name = self._write(t)
            made.append(AtenInput(name, t.shape, t.dtype, memory_order(t.shape, t.order)))
        return tuple(made)

    def begin(self, state: Sequence[Kept]) -> tuple[str, ...]:
        """Put the mutable buffers' initial values in memory, and return notes about them."""
        if (size := sum(kept.tensor.bytes for kept in state)) > MAX_STATE:
            raise CompileError(f"{self._plan.name} keeps {size:,} bytes between runs", need=f"at most {MAX_STATE:,}")
        notes = []
        for kept in state:
            if kept.initial is None:
                self.constants[kept.name] = np.zeros(kept.tensor.shape, kept.tensor.dtype.computed.numpy)
                notes.append(f"{kept.name} begins as zeros, as in ExecuTorch: the file holds no initial value for it")
            else:
                self.constants[kept.name] = self._array(kept.initial)
            self._memory.write(kept.name, kept.tensor)
        return tuple(notes)

    def value_at(self, index: int) -> Value:
        if not 0 <= index < len(self._plan.values):
            raise damaged(f"it refers to value {index} of {len(self._plan.values)}")
        return self._plan.values[self._same.get(index, index)]

    def tensor_at(self, index: int, role: str) -> TensorValue:
        value = self.value_at(index)
        if not isinstance(value, TensorValue):
            raise CompileError(f"{role} is {type(value).__name__}", at=f"v{index}", need="a tensor")
        return value

    def call(self, call: KernelCall) -> None:
        """Append one operator: split its arguments into inputs and results, then read and write."""
        args, results = self._split(call)
        if call.in_place and results[0].index in self._inputs:
            raise CompileError(
                f"the program changes its input {results[0]}",
                need="state in mutable buffers",
                try_="self.register_buffer(...) for state, and a new tensor for the result",
            )
        inputs = self._inputs_of(call, args)
        if call.operator == "aten::copy_" and self._copies_all(args, results):
            self._memory.write(self.read(self.tensor_at(args[1], "what is copied")), results[0])
            return
        target, inputs = plain_operator(call.operator, inputs, results)
        if target == "aten::as_strided" and keeps_elements([self.value_at(i) for i in args[:1]], inputs, results):
            target, inputs = "aten::view", (inputs[0], results[0].shape)
        if target == "cortex_m::pad":
            sides = padding_of(self.value_at(args[0]), inputs[1], inputs[2], results[0])
            target, inputs = "aten::constant_pad_nd", (inputs[0], sides, inputs[3])
        names = tuple(self._write(t) for t in results)
        self.calls.append(AtenCall(target, inputs, names, tuple(t.shape for t in results)))

    def delegate(self, call: DelegateCall) -> None:
        """Append a call of a delegate for an Ethos-U. Its tensors have the layout of memory."""
        if not 0 <= call.delegate < len(self._plan.delegates):
            raise damaged(f"it calls delegate {call.delegate} of {len(self._plan.delegates)}")
        at = f"delegate {call.delegate} of {self._plan.name}"
        payload = read_payload(self._program.delegate_data(self._plan.delegates[call.delegate]), at)
        tensors = [self.tensor_at(i, "what a delegate takes or gives") for i in call.args]
        _check_slots(payload, tensors, at)
        taken, given = tensors[: len(payload.inputs)], tensors[len(payload.inputs) :]
        commands, weights = (self._names.fresh(f"delegate{call.delegate}.{role}") for role in ("commands", "weights"))
        self.constants[commands] = np.frombuffer(payload.commands, np.int32)
        self.constants[weights] = np.frombuffer(payload.weights or bytes(16), np.uint8)
        xs = tuple(Ref(self._permute(self.read(t), t.shape, order_of(t))) for t in taken)
        shapes = tuple(tuple(t.shape[d] for d in order_of(t)) for t in given)
        ys = tuple(self._names.fresh(f"v{t.index}_stored") for t in given)
        places = [tuple(s.offset for s in slots) for slots in (payload.inputs, payload.outputs)]
        what: tuple[Arg, ...] = (Ref(commands), Ref(weights), payload.accelerator.config, payload.scratch)
        args: tuple[Arg, ...] = (*what, xs, places[0], shapes, places[1])
        self.calls.append(AtenCall("ethos_u::delegate", args, ys, shapes))
        for t, y, shape in zip(given, ys, shapes, strict=True):
            back = tuple(int(d) for d in np.argsort(order_of(t)))
            name = self._permute(y, shape, back)
            self._memory.write(name, t)
        self.notes.append(
            f"{at} is for {payload.accelerator.name}: its commands run as they are, on the emulated NPU too; "
            "the file does not contain the original model, so there is no result to compare with"
        )

    def _permute(self, name: str, shape: Shape, dims: tuple[int, ...]) -> str:
        if dims == tuple(range(len(dims))):
            return name
        result = self._names.fresh(f"{name}_permuted")
        self.calls.append(AtenCall("aten::permute", (Ref(name), dims), (result,), (tuple(shape[d] for d in dims),)))
        return result

    def read(self, tensor: TensorValue) -> str:
        """Return the name of the value in the tensor's bytes. A view is added if it was written with another shape."""
        if tensor.constant:
            return self._constant(tensor)
        held = self._memory.read(tensor)
        if held is None:
            raise CompileError(
                f"{tensor} is read before it is written",
                at=tensor.key or None,
                have="a wrong memory plan",
                try_="export the model again",
            )
        if held.tensor.index == tensor.index or same_layout(held.tensor, tensor):
            return held.name
        if not (is_contiguous(held.tensor) and is_contiguous(tensor)):
            raise CompileError(
                f"{tensor} is a view of channels-last memory, and would see its elements in another order",
                have=f"{held.tensor} in the order {list(held.tensor.order)}",
                try_="call .contiguous() before the view and export again: ExecuTorch runs it wrong, too",
            )
        view = (held.name, tensor.index)
        if view not in self._views:
            self._views[view] = self._names.fresh(f"v{tensor.index}")
            results = (self._views[view],)
            self.calls.append(AtenCall("aten::view", (Ref(held.name), tensor.shape), results, (tensor.shape,)))
        return self._views[view]

    def _copies_all(self, args: Sequence[int], results: Sequence[TensorValue]) -> bool:
        """Report whether copy_(to, from) copies the value unchanged, without widening or conversion."""
        source = self.value_at(args[1]) if len(args) == 3 else None
        return isinstance(source, TensorValue) and all(
            (source.shape, source.dtype) == (t.shape, t.dtype) for t in results
        )

    def _split(self, call: KernelCall) -> tuple[tuple[int, ...], tuple[TensorValue, ...]]:
        """Return arguments and results. ExecuTorch lists `out` tensors last, and after them what the operator returns:
        the one `out` once more, or all of them as a list."""
        *args, returned = call.args or (-1,)
        last = self.value_at(returned)
        if isinstance(last, TensorValue):
            if call.operator == "executorch_prim::et_view":
                return tuple(args), (last,)
            if call.in_place:
                return tuple(args), (self._changed(args[0], returned),)
            if args and args[-1] == returned:
                return tuple(args[:-1]), (last,)
        elif isinstance(last, Items):
            self._program.spend(len(last.indices))
            outs = list(last.indices)
            results = tuple(self.tensor_at(i, f"a result of {call.operator}") for i in outs)
            if outs and args[-len(outs) :] == outs:
                return tuple(args[: -len(outs)]), results
            if args and self.value_at(args[-1]) == last:
                return tuple(args[:-1]), results
        else:
            raise CompileError(
                f"{call.operator} computes {'a number' if last is not None else 'nothing'} at run time",
                at=f"v{returned}",
                need="sizes and numbers that are known when the program is exported",
            )
        raise damaged(f"{call.operator} does not return its last arguments")

    def _changed(self, index: int, returned: int) -> TensorValue:
        """Return the tensor that is changed in place. What the operator returns is the same tensor from now on."""
        changed, other = self.tensor_at(index, "what is changed in place"), self.value_at(returned)
        if not isinstance(other, TensorValue) or (other.shape, other.dtype) != (changed.shape, changed.dtype):
            raise damaged(f"v{index} is changed in place, and v{returned} is returned")
        if index != returned:
            self._same[returned] = changed.index
        return changed

    def _inputs_of(self, call: KernelCall, args: Sequence[int]) -> tuple[Arg, ...]:
        """Return the arguments of a call in the order of its operator's newest schema. Arguments of an unknown
        operator are not read, because the error about it does not need them."""
        kinds = [kind_of(self.value_at(i)) for i in args]
        matched = find_schema(call.operator, call.overload, kinds, f"{call.operator} in {self._plan.name}")
        if matched is None:
            return ()
        order = [(None if p.name in WORKSPACE else place, p.default) for p, place in matched.order()]
        return tuple(default if place is None else self._argument(args[place]) for place, default in order)

    def _argument(self, index: int) -> Arg:
        value = self.value_at(index)
        if isinstance(value, TensorValue):
            return Ref(self.read(value))
        if isinstance(value, Items):
            self._program.spend(len(value.indices))
            return tuple(None if i == -1 and value.of == "Tensor?" else self._item(i, value) for i in value.indices)
        return value

    def _item(self, index: int, items: Items) -> Arg:
        kind = kind_of(self.value_at(index))
        if kind != items.of.removesuffix("?"):
            raise damaged(f"v{index} is {kind} in a list of {items.of}")
        return self._argument(index)

    def _write(self, tensor: TensorValue) -> str:
        if tensor.constant:
            raise damaged(f"{tensor} is a constant, and is written")
        name = self._names.fresh(f"v{tensor.index}")
        self._memory.write(name, tensor)
        return name

    def _constant(self, tensor: TensorValue) -> str:
        same = (tensor.key if tensor.external else tensor.buffer, tensor.shape, tensor.dtype, tensor.order)
        if same not in self._constant_names:
            data = self._array(tensor)
            self._constant_names[same] = self._names.fresh(tensor.key or f"c{tensor.buffer}")
            self.constants[self._constant_names[same]] = data
        return self._constant_names[same]

    def _array(self, tensor: TensorValue) -> Array:
        """Return the data that the file contains for a tensor."""
        stored = np.frombuffer(self._program.data_of(tensor), tensor.dtype.numpy)
        if tensor.dtype.is_half:
            stored = from_half(stored, tensor.dtype)
        stored = stored.reshape([tensor.shape[d] for d in tensor.order])
        logical = stored.transpose([tensor.order.index(d) for d in range(len(tensor.order))])
        return np.ascontiguousarray(logical).reshape(tensor.shape)


def _check_slots(payload: Payload, tensors: Sequence[TensorValue], at: str) -> None:
    """Check that a delegate's payload has these inputs and outputs, in int8, inside its scratch."""
    slots = (*payload.inputs, *payload.outputs)
    if [t.bytes for t in tensors] != [slot.size for slot in slots] or not payload.inputs or not payload.outputs:
        raise CompileError(
            "a delegate is called with other tensors than it was compiled for",
            at=at,
            have=", ".join(map(str, tensors)),
            need=", ".join(f"{slot.size} bytes" for slot in slots),
        )
    for t in tensors:
        if t.dtype is not DType.INT8:
            raise CompileError("an input or output of a delegate is not int8", at=at, have=str(t))
    if any(slot.region != SCRATCH for slot in slots):
        raise CompileError(
            "a delegate's inputs or outputs are outside of its scratch",
            at=at,
            need="Vela without --separate-io-regions",
        )


def _forget_unread(calls: Sequence[AtenCall], outputs: Sequence[str]) -> tuple[AtenCall, ...]:
    """Return the calls, with None for results that are never read."""
    read = set(outputs)
    for call in calls:
        for arg in call.args:
            read |= {a.name for a in (arg if isinstance(arg, tuple) else (arg,)) if isinstance(a, Ref)}
    return tuple(replace(c, results=tuple(r if r in read else None for r in c.results)) for c in calls)


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
