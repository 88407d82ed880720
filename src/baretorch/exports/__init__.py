"""Write projects for SDKs: one row per SDK in SDKS, with its files in templates/.

A template is a file of that SDK in which @WORDS@ are replaced, in its text and in its name; a line with a word that
begins @EACH_ is repeated for each of its values. The model, its example and a header with the model's name are together
in the folder that the row calls `library`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from baretorch.errors import CompileError

if TYPE_CHECKING:
    from baretorch.targets.types import Board

C_HEADERS = {
    "assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale", "math",
    "setjmp", "signal", "stdalign", "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib",
    "stdnoreturn", "string", "tgmath", "threads", "time", "uchar", "unistd", "wchar", "wctype",
}  # fmt: skip


@dataclass(frozen=True)
class Sdk:
    """An SDK. `needs` are the keys of [sdk.NAME] in a board's TOML without which it does not know the board; `words`
    are further ones with their defaults. In templates a key is the word @SDK_KEY@.

    Without a board a project is portable C for any chip of the SDK, with the words `portable`; None if it needs a
    board.
    """

    name: str
    library: str  # where the model goes
    more: Mapping[str, str] = field(default_factory=dict)  # further templates, and where they go
    taken: frozenset[str] = frozenset()  # names of its own: headers, folders, targets
    needs: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    portable: Mapping[str, str] | None = None
    here: bool = False  # its programs run on the host
    bare: bool = False  # it uses Baretorch's runtime for the board
    main_stack: int = 0  # bytes that its main function has for printing, besides what the model needs

    def words_for(self, board: Board) -> dict[str, str]:
        """Return the words in the SDK's templates whose values depend on the board."""
        own = self.portable if board.hosted else board.sdk.get(self.name)
        words = {**self.words, **(own or {})}
        return {f"SDK_{key}".upper(): word for key, word in words.items()}

    def knows(self, board: Board) -> bool:
        return self.here if board.hosted else set(self.needs) <= set(board.sdk.get(self.name, {}))


# CMake's own targets; and headers of Arduino, in lower case because file systems may ignore case.
_CMAKE = frozenset({"all", "build", "clean", "edit_cache", "help", "install", "package", "rebuild_cache", "test"})
_ARDUINO = frozenset({"arduino", "eeprom", "serial", "spi", "wire"})
SDKS: tuple[Sdk, ...] = (
    Sdk("cmake", "@NAME@", {"plain": ""}, _CMAKE, portable={}, here=True),
    Sdk("make", "@NAME@", {"plain": ""}, portable={}, here=True),
    Sdk("pico-sdk", "@NAME@", taken=_CMAKE | {"boards", "hardware", "pico"}, needs=("board",)),
    Sdk("arduino", "@NAME@/src", taken=_ARDUINO, words={"fqbn": "YOUR:BOARD:NAME"}, portable={}),
    Sdk("platformio", "lib/@NAME@/src", taken=_ARDUINO, needs=("platform", "board")),
    Sdk("zephyr", "modules/@NAME@/src", taken=frozenset({"zephyr"}), needs=("board",), main_stack=2048),
    Sdk(
        "esp-idf",
        "components/@NAME@",
        taken=_CMAKE | {"driver", "esp_timer", "hal", "main"},
        needs=("target",),
        portable={"target": "YOUR_TARGET"},
        main_stack=3584,
    ),
    Sdk(
        "mbed-ce",
        "@NAME@",
        taken=_CMAKE | {"mbed", "rtos"},
        needs=("board",),
        words={"pyocd": ""},
        portable={"board": "YOUR_TARGET"},
    ),
    Sdk("cmsis-pack", "@NAME@", {"plain": "example"}, frozenset({"example"}), portable={}),
    Sdk("vscode", "@NAME@", {"vscode-@SDK_SERVER@": ""}, _CMAKE | {"board", "debug"}, needs=("server",), bare=True),
)
BY_NAME = {sdk.name: sdk for sdk in SDKS}


def boards_of(sdk: Sdk) -> tuple[str, ...]:
    """Return the names of our boards that the SDK knows."""
    from baretorch.targets.boards import board_names, load_board

    return tuple(name for name in board_names() if sdk.knows(load_board(name)))


def need_board(sdk: Sdk, board: Board | None) -> None:
    """Raise CompileError if the SDK does not know the board, or needs one."""
    if sdk.portable is not None if board is None else sdk.knows(board):
        return
    known = [f"one of {', '.join(boards_of(sdk))}"] if boards_of(sdk) else []
    keys = " and ".join(f"`{key}`" for key in sdk.needs)
    known += [f"your own .toml with {keys} in `[sdk.{sdk.name}]`"] if sdk.needs else []
    raise CompileError(
        f"{sdk.name} does not know {board.name}" if board else f"--sdk {sdk.name} needs a board",
        need=f"{'' if board else '--board: '}{', or '.join(known)}",
        try_="--sdk cmake or --sdk make, which take any board"
        if sdk.portable is None
        else "leave out --board: then the project is portable C for any chip",
    )


def need_name(sdk: Sdk, name: str) -> None:
    """Raise CompileError if the SDK or C has the name already."""
    if name in C_HEADERS:
        have = f"{name}.h, which C has already, so that programs would include the wrong one"
    elif name.lower() in sdk.taken:
        have = f"{name}, which {sdk.name} has already"
    else:
        return
    raise CompileError(f"a project cannot be called {name}", have=have, try_="another name for the model's file")
