"""A study ends with as many trials as were asked for, however processes end that work on it."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.quantize.precisions import Precision
from baretorch.tune.result import Costs
from baretorch.tune.study import Mark, Space, Study, Suggestion, TrialResult

SPACE = Space({"0": [Precision.INT8, Precision.INT4]}, ["0"], 4, 32)
BEGIN = [Suggestion({}, {}), Suggestion({"0": Precision.INT4}, {"0": 16})]


def measure(suggested: Suggestion) -> TrialResult:
    """A model whose accuracy and size both go with what is kept."""
    kept = suggested.parts.get("0", 32)
    flash = kept * (500 if suggested.layers else 1000)
    return TrialResult(1 - 0.01 * (32 - kept), Costs(flash, 100, 7 * kept), [flash / 20_000 - 1])


def test_all_trials_are_done_once_and_a_study_goes_on(tmp_path: Path) -> None:
    url, shown = f"sqlite:///{tmp_path}/s.db", list[tuple[int, int]]()
    study = Study("s", url, SPACE)
    study.queue(6, BEGIN)
    study.work(measure, lambda done, all_: shown.append((done, all_)))
    done = study.done()
    assert [d.number for d in done] == list(range(6))
    assert done[0].suggested.layers == {} and done[0].found.costs.flash == 32_000
    assert done[1].suggested == Suggestion({"0": Precision.INT4}, {"0": 16}) and done[
        1
    ].found.accuracy == pytest.approx(0.84)
    assert list(done[1].found.over) == [-0.6] and done[1].found.costs.ram == 100
    assert shown[0] == (0, 6) and shown[-1] == (6, 6)
    again = Study("s", url, SPACE, joined=True)
    again.queue(8, BEGIN)
    again.work(measure, lambda done, all_: None)
    assert [d.number for d in again.done()] == list(range(8))
    assert [d.found for d in again.done()][:6] == [d.found for d in done]


def test_numbers_that_a_file_offers(tmp_path: Path) -> None:
    space = replace(SPACE, offered={"width": (0.5, 1), "size": (16, 32)})
    study = Study("s", f"sqlite:///{tmp_path}/s.db", space)
    study.queue(3, [Suggestion({}, {}, {"width": 0.5, "size": 32})])
    seen = list[Suggestion]()
    study.work(lambda suggested: seen.append(suggested) or measure(suggested), lambda done, all_: None)
    assert seen[0] == Suggestion({}, {}, {"width": 0.5, "size": 32})
    assert [d.suggested.arguments for d in study.done()] == [s.arguments for s in seen]
    assert all(s.arguments["width"] in (0.5, 1) and s.arguments["size"] in (16, 32) for s in seen)


@pytest.mark.slow
def test_one_process_finds_the_same_again(tmp_path: Path) -> None:
    found = []
    for name in ("a", "b"):
        study = Study("s", f"sqlite:///{tmp_path}/{name}.db", SPACE)
        study.queue(12, BEGIN)
        study.work(measure, lambda done, all_: None)
        found.append([d.suggested for d in study.done()])
    assert found[0] == found[1]
    assert len(set(map(str, found[0]))) > 4


def test_an_error_of_a_trial_is_the_errors_end_and_not_the_studys(tmp_path: Path) -> None:
    """An error of a trial is raised; the trial is repeated when its process is known to be dead."""
    study = Study("s", f"sqlite:///{tmp_path}/s.db", SPACE)
    study.queue(1, BEGIN)

    def fails(suggested: Suggestion) -> TrialResult:
        raise CompileError("no")

    with pytest.raises(CompileError, match="no"):
        study.work(fails, lambda done, all_: None)
    assert study.done() == []


def test_who_dies_as_it_takes_a_trial_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies before it could report that it is alive."""
    monkeypatch.setattr("baretorch.tune.study.DEAD", 1)
    url, deadline = f"sqlite:///{tmp_path}/s.db", time.monotonic() + 30
    study = Study("s", url, SPACE)
    study.queue(1, BEGIN)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Study, "_sampler", lambda self, number: (_ for _ in ()).throw(KeyboardInterrupt))
        study.work(measure, lambda done, all_: None)

    def show(done: int, all_: int) -> None:
        assert time.monotonic() < deadline, "it waits for the dead"

    other = Study("s", url, SPACE, joined=True)
    other.work(measure, show)
    assert len(other.done()) == 1


def test_who_joins_before_trials_are_asked_for_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who began it measures what choices harm by then."""
    monkeypatch.setattr("baretorch.tune.study.WAIT", 0.05)
    url, looked = f"sqlite:///{tmp_path}/s.db", threading.Event()
    study = Study("s", url, SPACE)

    def join() -> None:
        joined = Study("s", url, SPACE, joined=True)
        joined.work(measure, lambda done, all_: looked.set())
        joined.close()

    worker = threading.Thread(target=join)
    worker.start()
    assert looked.wait(30)
    study.queue(3, BEGIN)
    worker.join(60)
    assert not worker.is_alive() and len(study.done()) == 3


def test_a_database_that_breaks_while_it_is_used(tmp_path: Path) -> None:
    study = Study("s", f"sqlite:///{tmp_path}/s.db", SPACE)
    study.queue(1, BEGIN)

    def breaks(suggested: Suggestion) -> TrialResult:
        with sqlite3.connect(tmp_path / "s.db") as database:
            database.execute("drop table trial_user_attributes")
        database.close()
        return measure(suggested)

    with pytest.raises(CompileError, match="cannot use the database"):
        study.work(breaks, lambda done, all_: None)
    with pytest.raises(CompileError, match="cannot use the database"):
        study.done()


def test_a_sign_of_life_that_is_lost_is_not_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baretorch.tune.study.BEAT", 0.01)
    study = Study("s", f"sqlite:///{tmp_path}/s.db", SPACE)
    study.queue(1, BEGIN)
    beats, recorded = list[int](), threading.Event()
    record = study._storage.record_heartbeat

    def sometimes(trial: int) -> None:
        beats.append(trial)
        if len(beats) == 2:
            raise OSError("the line is dead")
        record(trial)
        if len(beats) > 2:
            recorded.set()

    monkeypatch.setattr(study._storage, "record_heartbeat", sometimes)

    def slow(suggested: Suggestion) -> TrialResult:
        assert recorded.wait(30)
        return measure(suggested)

    study.work(slow, lambda done, all_: None)
    assert len(study.done()) == 1


@pytest.mark.parametrize("url", ["redis://h", "/a/file", "sqlite", "sqlite://a.db", "postgresql://me:secret@host/x"])
def test_other_databases_are_refused_without_their_password(url: str) -> None:
    with pytest.raises(CompileError, match="not the address of an SQLite database") as error:
        Study("s", url, SPACE)
    assert "secret" not in error.value.render()


def test_a_study_is_of_one_model(tmp_path: Path) -> None:
    """A model that was trained again starts another study, and neither is lost; last bits do not make another model."""
    url, mark = f"sqlite:///{tmp_path}/s.db", Mark(0.98, (30.0, 2.0))
    first = Study("s", url, SPACE, mark=mark)
    first.queue(2, BEGIN)
    first.work(measure, lambda done, all_: None)
    for other in (Mark(0.98, (30.0, 2.01)), Mark(0.91, (30.0, 2.0)), Mark(0.98, (30.0,))):
        assert Study("s", url, SPACE, mark=other).done() == []
    with pytest.raises(CompileError, match="the database has no study 's-5'"):
        Study("s", url, SPACE, joined=True, mark=Mark(0.5, (30.0, 2.0)))
    for same in (mark, Mark(0.9801, (30.0001, 2.0))):
        assert len(Study("s", url, SPACE, joined=True, mark=same).done()) == 2


def test_what_cannot_be_joined(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="the database has no study 's'"):
        Study("s", f"sqlite:///{tmp_path}/s.db", SPACE, joined=True)
    with pytest.raises(CompileError, match="cannot use the database"):
        Study("s", f"sqlite:///{tmp_path}/nowhere/s.db", SPACE)


WORKER = """
import sys, time
from tests.tune.test_study import SPACE, measure
from baretorch.tune import study
def slow(suggested):
    print("began", flush=True)
    time.sleep(float(sys.argv[2]))
    return measure(suggested)
study.BEAT, study.DEAD = 1, 4
study.Study("s", sys.argv[1], SPACE, joined=True).work(slow, lambda done, all_: None)
"""


def worker(url: str, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, url, str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def four_workers_of_which_two_die(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baretorch.tune.study.BEAT", 1)
    monkeypatch.setattr("baretorch.tune.study.DEAD", 4)
    study = Study("s", url, SPACE)
    study.queue(20, BEGIN)
    doomed = [worker(url, 60.0) for _ in range(2)]
    for process in doomed:
        assert process.stdout is not None and process.stdout.readline() == "began\n"
    others = [worker(url, 0.3) for _ in range(2)]
    deadline = time.monotonic() + 60
    while len(study.done()) < 4 and time.monotonic() < deadline:
        time.sleep(0.2)
    before = study.done()
    assert 4 <= len(before) < 18
    for process in doomed:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    for process in others:
        assert process.communicate(timeout=180) and process.returncode == 0
    done = study.done()
    assert len(done) == 20
    assert [d for d in done if d.number in {b.number for b in before}] == before
    asked = {t.number: t.user_attrs["asked"] for t in study._study.trials}
    assert sorted(asked[d.number] for d in done) == list(range(20))
    states = [t.state.name for t in study._study.trials if t.state.name == "FAIL"]
    assert len(states) >= 2  # what the dead had begun
    study.close()


@pytest.mark.slow
def test_four_processes_on_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    four_workers_of_which_two_die(f"sqlite:///{tmp_path}/s.db", monkeypatch)
