"""`make demo-mnist`: both networks on an emulated Pico4ML that looks at digits through its camera.

Writes to build/demo-mnist: screens.png and camera.gif, pictures of the display; results.json, all figures.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from emulate import Watched, built, by_scene, watch, write_frames
from photo import photographs
from PIL import Image as Picture

from baretorch.firmware.types import Image
from baretorch.machines.rp2040js.attached import Attached, By
from baretorch.machines.rp2040js.node import is_installed
from baretorch.options import Weights

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "build" / "demo-mnist"
FRAMES, JOBS = 500, 2
SHOWN, HOLD = 8, 6  # digits in the animation, and how many frames each is shown
FIRST = 1000  # of the test images that are photographed
SEED = 2
SCALE = 3


@dataclass(frozen=True)
class Network:
    title: str
    model: Path
    weights: Weights


NETWORKS = (
    Network("small CNN", HERE / "digits.py", Weights.RAM),
    Network("784-400-10", HERE / "mlp.py", Weights.FLASH),
)


def main() -> None:
    if not is_installed():
        sys.exit("rp2040js is missing: `tools/setup.sh camera` installs it")
    OUT.mkdir(parents=True, exist_ok=True)
    digits = _digits()
    print(f"photographing {FRAMES} digits, each on paper of its own, tilted, in uneven light, with noise", flush=True)
    frames = list(photographs(digits[0], SEED))
    results = {network.title: _measured(network, frames, digits[1]) for network in NETWORKS}
    print(_table(results))
    (OUT / "results.json").write_text(json.dumps(results, indent=1) + "\n")


def _digits() -> tuple[np.ndarray, np.ndarray]:
    """Test images that no network has seen, and what they are."""
    sys.path.insert(0, str(HERE.parent / "mnist"))
    from data import fetch, images_and_labels

    fetch()
    images, labels = images_and_labels("t10k")
    return images[FIRST : FIRST + FRAMES], labels[FIRST : FIRST + FRAMES]


def _measured(network: Network, frames: list[np.ndarray], labels: np.ndarray) -> dict[str, Any]:
    name = network.model.stem
    print(f"{network.title}: building the firmware", flush=True)
    image, run = built(network.model, OUT / name, network.weights)
    print(f"{network.title}: {SHOWN * HOLD} frames, bit by bit at the pins of the camera", flush=True)
    shown = _show(image, run, frames)
    print(f"{network.title}: {FRAMES} frames, by bytes", flush=True)
    watched = _judge(image, run, frames)
    answers = {a.scene: a for a in chain.from_iterable(by_scene(w.answers) for w in watched)}
    right = sum(answers[scene].digit == label for scene, label in enumerate(labels))
    print(f"{network.title}: all test images", flush=True)
    return {
        "camera_accuracy": right / len(labels),
        "test_accuracy": _evaluated(network),
        "display_fps": min(w.pictures_per_second for w in (shown, *watched)),
        "answers_per_second": _rate(shown),
        "instructions": int(np.median(shown.instructions)),
        "cycles": int(np.median(shown.cycles)),
        "core0_ms": float(np.median([a.us for a in shown.answers])) / 1000,
        "flash": image.flash.total,
        "weights": image.flash.weights,
        "ram": image.ram.total,
    }


def _show(image: Image, run: str, frames: list[np.ndarray]) -> Watched:
    """The first digits, with pictures of the display; those of the first network are the docs'."""
    file = write_frames(_held(frames[:SHOWN]), OUT / "shown.raw")
    shown = watch(image, run, Attached(file, By.PINS, pictures=True), lambda w: len(w.pictures) > SHOWN * HOLD)
    screens = [Picture.open(BytesIO(png)) for _, png in shown.pictures if png]
    if image.name == NETWORKS[0].model.stem:
        _strip(screens[HOLD * SHOWN // 2 + HOLD - 1 :: HOLD][:4]).save(OUT / "screens.png", optimize=True)
        large = [_large(s, 2).quantize(32) for s in screens[: SHOWN * HOLD]]
        large[0].save(OUT / "camera.gif", save_all=True, append_images=large[1:], duration=120, loop=0, optimize=True)
    file.unlink()
    return shown


def _held(frames: list[np.ndarray]) -> Iterator[np.ndarray]:
    """Each several times, by a hand that is not quite still, with noise that is never the same."""
    rng = np.random.default_rng(SEED)
    for frame in frames:
        for _ in range(HOLD):
            moved = np.roll(frame, rng.integers(-4, 5, 2), (0, 1)).astype(np.float32)
            yield np.clip(moved + rng.normal(0, 4, frame.shape), 0, 255).astype(np.uint8)


def _large(screen: Picture.Image, times: int = SCALE) -> Picture.Image:
    return screen.convert("RGB").resize((screen.width * times, screen.height * times), Picture.Resampling.NEAREST)


def _strip(screens: list[Picture.Image]) -> Picture.Image:
    """Return the pictures next to each other."""
    gap = 4 * SCALE
    large = [_large(s) for s in screens]
    whole = Picture.new("RGB", (sum(s.width + gap for s in large) - gap, large[0].height), "white")
    for i, screen in enumerate(large):
        whole.paste(screen, (i * (screen.width + gap), 0))
    return whole


def _judge(image: Image, run: str, frames: list[np.ndarray]) -> list[Watched]:
    """Read all frames once, shared among processes. Scenes are numbered like their frames."""

    def part(job: int) -> Watched:
        own = range(job, len(frames), JOBS)
        file = write_frames((frames[i] for i in own), OUT / f"part{job}.raw")
        seen = watch(image, run, Attached(file, By.BYTES), lambda w: len({a.scene for a in w.answers}) == len(own))
        seen.answers = [type(a)(own[a.scene], a.digit, a.percent, a.us) for a in seen.answers]
        file.unlink()
        return seen

    with ThreadPoolExecutor(JOBS) as pool:
        return list(pool.map(part, range(JOBS)))


def _rate(shown: Watched) -> float:
    """Answers a second while pictures were shown."""
    seconds = (shown.pictures[-1][0] - shown.pictures[0][0]) / 1000
    return (len(shown.answers) - 1) / seconds


def _evaluated(network: Network) -> dict[str, float]:
    """Evaluate the model with the verb that users have: the host's C for all test images, and the chip for a sample,
    bit for bit."""
    command = [sys.executable, "-m", "baretorch", "evaluate", str(network.model), "--board", "pico4ml", "--int8"]
    done = subprocess.run([*command, "--target-samples", "20", "--json"], check=True, capture_output=True, text=True)
    metrics = json.loads(done.stdout)["metrics"]
    return {"float": metrics["pytorch"]["accuracy"], "int8": metrics["target"]["accuracy"]}


def _table(results: dict[str, dict[str, Any]]) -> str:
    rows: list[tuple[str, list[str]]] = []

    def row(title: str, form: str, *keys: str) -> None:
        values = []
        for found in results.values():
            value: Any = found
            for key in keys:
                value = value[key]
            values.append(form.format(value))
        rows.append((title, values))

    row("MNIST's 10,000 test images, float32", "{:.2%}", "test_accuracy", "float")
    row("the same in int8", "{:.2%}", "test_accuracy", "int8")
    row(f"{FRAMES} camera frames", "{:.1%}", "camera_accuracy")
    row("display, pictures a second", "{:.1f}", "display_fps")
    row("network, answers a second", "{:.1f}", "answers_per_second")
    row("instructions of an inference", "{:,}", "instructions")
    row("core 0, ms for an answer", "{:.1f}", "core0_ms")
    row("flash of the image, bytes", "{:,}", "flash")
    row("of that, weights", "{:,}", "weights")
    row("RAM, bytes", "{:,}", "ram")
    head = f"{'':36}" + "".join(f"{title:>14}" for title in results)
    return "\n".join([head, *(f"{title:36}" + "".join(f"{v:>14}" for v in values) for title, values in rows)])


if __name__ == "__main__":
    main()
