"""An emulator of this computer that counts one instruction per call. It belongs into machines/."""

from __future__ import annotations

from baretorch.firmware.types import Image
from baretorch.machines.native import NativeMachine
from baretorch.machines.types import Driver, Tool


class ToyMachine(NativeMachine):
    """An image on the toy emulator."""

    name = "toy"

    def __init__(self, image: Image) -> None:
        super().__init__(image)
        self._calls = 0
        self._model = image.board.toy_model  # type: ignore[attr-defined]  # a key of the changed package

    def read(self, timeout: float) -> bytes:
        assert self._model == "t1000"
        self._calls += 1
        return super().read(timeout)

    def instructions(self) -> tuple[int, ...]:
        return (1,) * self._calls


DRIVER = Driver(
    lambda image, run_symbol, timed: ToyMachine(image),
    tools=(Tool("toy-emulator", "library", "emulates toys", "buy one", find=lambda: "1.0"),),
)
