"""Hostile directories: links, pipes, giants, liars and crowds are counted, never trusted."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path

import pytest

from monitor.model.clock import Moment
from monitor.model.owner import user_name
from monitor.model.snapshot import encode
from monitor.runs import discovery, folder
from monitor.runs.reader import RunReader
from monitor.runs.trouble import Trouble
from sdk import ring
from tests.unit.runs.rings import Script


def polled(directory: Path) -> RunReader:
    reader = RunReader([directory, directory / "missing"])
    now = Moment.now()
    reader.poll(now)
    reader.runs(now, (), ())
    reader.poll(now)
    return reader


def test_what_is_not_a_ring_file_is_refused(tmp_path: Path) -> None:
    target = Script(tmp_path, "good")
    rings = tmp_path / "rings"
    rings.mkdir()
    os.symlink(target.path, rings / "link.ring")
    os.mkfifo(rings / "pipe.ring")
    (rings / "folder.ring").mkdir()
    (rings / "empty.ring").touch()
    (rings / "short.ring").write_bytes(b"GPUMONR1")
    with open(rings / "huge.ring", "wb") as file:
        file.truncate(folder.MAX_FILE_BYTES + 1)
    (rings / "zeros.ring").write_bytes(bytes(ring.DATA_AT + 4096))
    (rings / "half.ring.tmp").write_bytes(b"not yet")
    reader = polled(rings)
    assert reader.followers == []
    assert reader.dropped == {
        "rings.not_a_file": 3, "rings.size": 3, "rings.broken": 1,
    }  # fmt: skip


def _forged(path: Path, **words: int) -> None:
    """A ring that is valid except for some header words."""
    Script(path.parent, "forged", file=path.name).writer.close(ring.S_RUNNING)
    with open(path, "r+b") as file:
        for name, value in words.items():
            file.seek(getattr(ring, name) * 8)
            file.write(struct.pack("<Q", value))


@pytest.mark.parametrize(
    "words",
    [
        {"H_VERSION": 99},
        {"H_SLOTS": 0},
        {"H_SLOTS": 1 << 60},
        {"H_HEAD": (1 << 64) - 1},
        {"H_PID": 0},
        {"H_PID": 1 << 40},
        {"H_STATE": 17},
        {"H_STARTED_WALL": (1 << 64) - 1},
        {"H_META_LEN": 5},
    ],
)
def test_hostile_headers_are_refused(tmp_path: Path, words: dict[str, int]) -> None:
    _forged(tmp_path / "bad.0.ring", **words)
    reader = polled(tmp_path)
    assert reader.followers == [] and reader.dropped["rings.broken"] == 1


def test_steps_a_killed_writer_had_done_but_not_written_are_lost_ones(tmp_path: Path) -> None:
    """GIVEN a writer killed with three steps not yet committed WHEN read THEN read + lost is what it did."""
    script = Script(tmp_path)
    script.steps([10.0] * 5)
    script.writer.words[ring.H_CLOSED] = 8
    script.writer.words[ring.H_PID] = 2**30
    os.close(script.writer._fd)  # what the kernel does to the lock of a killed process
    reader = RunReader([tmp_path], keep_ended=float("inf"))
    reader.poll(script.now())
    reader.poll(script.now())
    (run,) = reader.runs(script.now(), (), ())
    assert (run.state, run.steps, run.lost) == ("killed", 8, 3)


def test_a_head_without_records_reads_as_lost(tmp_path: Path) -> None:
    _forged(tmp_path / "liar.0.ring", H_HEAD=1_000_000, H_PID=2**30)
    reader = RunReader([tmp_path], keep_ended=float("inf"))
    reader.poll(Moment.now())
    reader.poll(Moment.now())
    (run,) = reader.runs(Moment.now(), (), ())
    assert run.ranks[0].step.count == 0 and run.ranks[0].phases == ()
    assert (run.state, run.steps, run.lost) == ("killed", 1_000_000, 1_000_000)


@pytest.mark.parametrize(
    "meta",
    [{"run": "../../etc/passwd"}, {"run": ""}, {"run": "x" * 500}, {"run": 7}, {"run": "a\nb"}],
)
def test_run_ids_that_could_do_harm_are_refused(tmp_path: Path, meta: dict[str, object]) -> None:
    script = Script(tmp_path, "ok")
    script.writer.write_meta({"kind": "trainer", **meta})
    reader = polled(tmp_path)
    assert reader.followers == [] and reader.dropped["rings.broken"] == 1


def test_strange_meta_values_are_ignored(tmp_path: Path) -> None:
    script = Script(
        tmp_path, "odd", world=-3, local_rank="x", batch_size=True, phases="no", scalars=[1, None],
        config=[1], name="\x1b[31mred\x00", command=["a"], user={"a": 1},
    )  # fmt: skip
    script.steps([1.0] * 3)
    reader = polled(tmp_path)
    (run,) = reader.runs(script.now(), (), ())
    assert (run.world_size, run.batch_size, run.config, run.command) == (1, None, {}, None)
    assert run.user == user_name(os.getuid()), "the file's owner, whatever the ring claims"
    assert "\x1b" not in run.name and "red" in run.name


@pytest.mark.parametrize(
    "config",
    [
        '{"a": 1e999, "b": NaN, "c": 99999999999999999999999999, "d": "\\ud800", "e": {"\\udfff": [[[]]]}}',
        '{"deep": ' + "[" * 20_000 + "]" * 20_000 + "}",
        '{"hotspots": [1, {"share": "x", "seconds": []}, null]}',
        '{"hotspots": 5, "env": [1], "visible_devices": {"a": 1}, "loader": 7}',
    ],
)
def test_a_hostile_config_never_breaks_the_snapshot(tmp_path: Path, config: str) -> None:
    script = Script(tmp_path, device="cuda:0")
    script.steps([1.0] * 20)
    raw = f'{{"kind": "trainer", "run": "run-1", "rank": 0, "config": {config}}}'.encode()
    script.writer._mappings[-1][ring.META_AT : ring.META_AT + len(raw)] = raw
    script.writer.words[ring.H_META_LEN] = len(raw)
    reader = polled(tmp_path)
    assert encode(reader.runs(script.now(), (), ()))


@pytest.mark.parametrize("size", [0, 100, 2048, ring.DATA_AT, ring.DATA_AT + 300])
def test_truncated_while_followed(tmp_path: Path, size: int) -> None:
    script = Script(tmp_path)
    script.steps([1.0] * 10)
    reader = RunReader([tmp_path])
    reader.poll(script.now())
    os.truncate(script.path, size)
    reader.poll(script.now())
    (run,) = reader.runs(script.now(), (), ())
    assert run.steps == 10 and run.state == "killed" and reader.dropped == {"rings.broken": 1}


def test_crowds_are_capped_per_owner_and_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = [Script(tmp_path, f"run-{at}") for at in range(6)]
    monkeypatch.setattr(discovery, "MAX_PER_OWNER", 4)
    reader = polled(tmp_path)
    assert len(reader.followers) == 4 and reader.dropped == {"rings.rings": 2, "rings.waiting": 2}
    assert [(one.owner_uid, one.reason, one.count) for one in reader.trouble.counts()] == [
        (os.getuid(), "rings", 2)
    ]
    monkeypatch.setattr(discovery, "MAX_PER_OWNER", 100)
    monkeypatch.setattr(discovery, "MAX_RINGS", 5)
    reader.poll(Moment.now())
    assert len(reader.followers) == 5 and reader.dropped["rings.waiting"] == 1
    monkeypatch.setattr(discovery, "MAX_RINGS", 6)
    reader.poll(Moment.now())
    assert len(reader.followers) == 6 and "rings.waiting" not in reader.dropped
    for script in scripts:
        script.writer.close()


def test_a_crowd_is_taken_in_small_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN more rings than are opened in one poll THEN each poll opens some, and in the end all are open."""
    monkeypatch.setattr(discovery, "NEW_PER_POLL", 4)
    for at in range(10):
        Script(tmp_path, f"run-{at}")
    reader = RunReader([tmp_path])
    seen = []
    for _ in range(4):
        reader.poll(Moment.now())
        seen.append(len(reader.followers))
    assert seen == [4, 8, 10, 10] and reader.dropped == {}


def test_out_of_descriptors_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Script(tmp_path)
    found = discovery.Discovery([tmp_path], Trouble())

    def full(*args: object) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as patched:
        patched.setattr("monitor.runs.discovery.os.open", full)
        found.look()
        assert found.take() == [] and found.trouble.totals()["listing"] == 1
    found.look()
    (one,) = found.take()
    os.close(one.fd)


def test_an_unchanged_directory_is_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Script(tmp_path)
    os.utime(tmp_path, (0, 1000))
    reader = polled(tmp_path)
    monkeypatch.setattr(folder, "_open", lambda path, status: pytest.fail("listed again"))
    reader.poll(Moment.now())


def test_meta_being_written_is_waited_for(tmp_path: Path) -> None:
    script = Script(tmp_path)
    words = script.writer.words
    words[ring.H_META_SEQ] += 1
    reader = RunReader([tmp_path])
    reader.poll(script.now())
    assert reader.followers == [] and reader.dropped == {}
    words[ring.H_META_SEQ] += 1
    reader.poll(script.now())
    assert len(reader.followers) == 1
