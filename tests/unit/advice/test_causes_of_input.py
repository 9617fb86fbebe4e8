"""Causes in the input: samples, sampler, collate function, workers."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.model.host import Disk, Pressure
from tests.unit.advice.build import (
    called,
    findings,
    first,
    hot,
    loader,
    loader_config,
    run_of,
    snapshot_of,
    trainer_process,
)
from tests.unit.advice.shapes import LOADED, STARVED, host, starved
from tests.unit.advice.test_rules import findings_of

LOOP = {"data": 0.0004, "forward": 0.003, "backward": 0.005, "optimizer": 0.0006}


def test_while_no_line_is_known_all_of_fetching_may_be_its_work() -> None:
    """GIVEN the same run before and after its lines were looked up THEN the first range reaches clearly
    beyond what is likely once they are known."""
    young, known = first(starved(0, [])), first(starved(0, [hot("fetch", "x = scale(x)", share=0.98)]))
    assert young.id == known.id == "input.slow_getitem"
    assert young.speedup is not None and known.speedup is not None
    assert young.speedup.likely < known.speedup.likely < 0.95 * young.speedup.high


def test_random_samples_with_workers_ask_for_batches_not_for_a_cache() -> None:
    drawn = hot("fetch", "img = img * scale", function="Rows.jitter", random=True, calls=1600.0)
    found = first(starved(2, [drawn]))
    assert found.id == "input.slow_getitem"
    assert "whole batch" in found.remedy.summary and "Rows.jitter" in found.title


def test_what_a_whole_batch_saves_is_the_fixed_cost_of_operations() -> None:
    """GIVEN random samples THEN many light operations are worth a whole batch, a heavy one is not."""
    gains = []
    for calls in (32.0, 800.0, 3200.0):
        line = hot("fetch", "img = blur(img)", function="Rows.jitter", random=True, calls=calls)
        found = first(starved(2, [line]))
        assert found.id == ("input.bound" if calls == 32.0 else "input.slow_getitem")
        gains.append(found.speedup.likely if found.speedup else None)
    assert gains[0] is None and gains[1] and gains[2] and gains[1] < gains[2]


def test_what_a_library_draws_for_a_sample_is_not_to_be_kept() -> None:
    """GIVEN a library's data set and transforms, so that no line of the user's makes samples WHEN making them
    used a random generator, in the loop or in a worker THEN nothing is said of keeping them; a stream may
    have drawn its order only."""
    asks = hot("data", "for x, y in loader:", function="train", head=True)

    def said(workers: int, *, worker_drew: bool = False, drew: float = 0.0, **loading: Any) -> list[str]:
        config = loader_config(workers, **loading) | {"hotspots": [asks], "samples_drawn": worker_drew}
        rank = {"loader": loader(**LOADED), "scalars": {"loader.samples_drawn": drew}}
        return [one.id for one in findings(run_of(STARVED, config=config, rank=rank))]

    assert "input.slow_getitem" in said(0) and "input.slow_getitem" in said(2)
    assert said(0, drew=1.0)[0] == "input.no_workers"
    assert "input.slow_getitem" not in said(2, worker_drew=True)
    assert "input.slow_getitem" in said(0, drew=1.0, iterable=True)


def test_what_is_not_random_in_a_sample_is_still_to_be_cached() -> None:
    spots = [
        hot("fetch", "img = decode(blob)", 0.85, function="Rows.decode"),
        hot("fetch", "img = img * scale", 0.1, function="Rows.jitter", random=True, line=9),
    ]
    assert "once for all" in first(starved(2, spots)).remedy.summary


def test_a_scan_in_getitem_is_the_data_sets_own_code() -> None:
    scan = hot("data", "for row in csv.reader(file):", function="Rows.__getitem__")
    assert "train.py:7" in first(starved(0, [scan])).title


def test_a_line_that_is_not_singled_out_is_not_named() -> None:
    """GIVEN a function whose time is on no one line, or on an unknown one THEN it is named alone."""
    method = "Rows.__getitem__"
    spread = [
        hot("data", "total += k", 0.5, function=method),
        hot("data", "return torch.full(n)", 0.4, function=method, line=9),
    ]
    unknown = [hot("data", "", 0.9, function=method, line=0)]
    for spots in (spread, unknown):
        found = first(starved(0, spots))
        assert found.evidence["hot_line"] == "train.py" and "`Rows.__getitem__` (train.py)" in found.title
        assert "torch.full" not in str(found) and ":7" not in found.title
    mostly = [hot("data", "total += k", 0.8, function=method), spread[1] | {"share": 0.1}]
    assert first(starved(0, mostly)).evidence["hot_line"] == "train.py:7"


def test_the_sampler_is_named_at_its_line() -> None:
    scan = hot("data", "pool = [i for i in labels if i == c]", function="Balanced.__iter__")
    times = LOADED | {"sampler_seconds": 0.019, "fetch_seconds": 0.001}
    found = first(starved(0, [scan], times, batch_sampler="Balanced"))
    assert found.id == "input.slow_sampler" and "train.py:7" in found.title


def test_the_collate_function_is_named_at_its_line_and_torchs_own_otherwise() -> None:
    times = LOADED | {"collate_seconds": 0.018, "fetch_seconds": 0.001}
    split = hot(
        "data", "words = text.split()", function="tokenize", callers=[called("collate", 30, "tokenize(t)")]
    )
    named = first(starved(0, [split], times))
    assert named.id == "input.slow_collate" and "train.py:7" in named.title
    torchs = first(starved(0, [], times, collate="default_collate"))
    assert "one indexing" in torchs.remedy.summary and "default_collate" not in torchs.remedy.change


COLLATED = LOADED | {"collate_seconds": 0.018, "fetch_seconds": 0.001}


def _draw(calls: float, phase: str = "data") -> dict[str, Any]:
    """The line of a collate function that draws neighbours."""
    line: dict[str, Any] = {"function": "Neighbours.pick", "line": 33, "random": True, "calls": calls}
    return hot(phase, "chosen = torch.rand(len(ring), fanout) * degree[:, None]", **line)


def test_batches_that_are_drawn_are_not_to_be_made_once() -> None:
    """GIVEN a collate function that draws THEN workers come first; with them, many small draws are to be one
    and a few large ones are as they should be."""
    at = {"collate_at": ["train.py", 28, 40], "collate": "<lambda>"}
    alone = first(starved(0, [_draw(5.0)], COLLATED, **at))
    assert alone.id == "input.no_workers" and alone.remedy.effect == "in_expectation"
    many = first(starved(2, [_draw(3200.0, "collate")], COLLATED, **at))
    assert many.id == "input.slow_collate" and many.remedy.effect == "in_expectation"
    assert "whole batch" in many.remedy.summary and "is built" not in many.remedy.summary
    few = first(starved(2, [_draw(5.0, "collate")], COLLATED, **at))
    assert few.id == "input.bound" and few.speedup is None


def test_a_collate_function_is_known_by_its_place() -> None:
    """A lambda has no name of its own: its lines count as its function's."""
    at = {"collate_at": ["train.py", 28, 40], "collate": "<lambda>"}
    line = hot("data", "pad(rows)", function="fit", line=33)
    assert "train.py:33" in first(starved(0, [line], COLLATED, **at)).title
    assert "train.py:3" not in first(starved(0, [line | {"line": 3}], COLLATED, **at)).title


def test_a_sampler_draws_an_order_not_samples() -> None:
    """GIVEN a sampler that draws beside samples that are always the same THEN these are to be kept."""
    draws = hot("data", "order = rng.permutation(n)", 0.4, function="Balanced.__iter__", random=True, line=3)
    makes = hot("data", "x = scale(x)", 0.5, function="Rows.__getitem__")
    found = first(starved(0, [draws, makes], LOADED | {"sampler_seconds": 0.002}, batch_sampler="Balanced"))
    assert found.id == "input.slow_getitem" and "once for all" in found.remedy.summary


def test_a_buffer_shuffled_for_every_sample_is_named_at_its_line() -> None:
    """GIVEN a stream whose buffer is shuffled for each sample WHEN that takes much of loading THEN the line
    is a finding of its own, with what it takes and no more; samples are not called random."""
    shuffle = hot("data", "random.shuffle(buffer)", 0.3, function="mixed", line=71, orders=True)
    encode = hot("data", "text = pattern.sub(instead, text)", 0.6, function="Rows.encode")
    found = {one.id: one for one in findings(starved(0, [shuffle, encode], iterable=True))}
    named = found["input.slow_getitem"]
    assert "random.shuffle(buffer)" in named.title and "randrange" in named.remedy.summary
    assert named.speedup is not None and named.speedup.likely < 1.35
    little = first(starved(0, [shuffle | {"share": 0.1}, encode], iterable=True))
    assert "encode" in little.title and "once for all" in little.remedy.summary


def test_many_idle_workers_are_too_many_even_when_nothing_waits() -> None:
    times = {"fetch_seconds": 0.004, "collate_seconds": 0.0005, "worker_busy_ratio": 0.02}
    crowd = run_of(config=loader_config(16), rank={"loader": loader(**times)}, batch_size=8)
    found = first(crowd)
    assert found.id == "input.too_many_workers" and found.evidence["suggested_workers"] == 1
    few = run_of(config=loader_config(2), rank={"loader": loader(**times)})
    assert first(few).id == "healthy.ok"


def test_the_loader_without_a_hot_line_still_has_its_cause() -> None:
    run = run_of(STARVED, config=loader_config(0), rank={"loader": loader(**LOADED)})
    assert first(run).id.startswith("input.")


def test_workers_that_queue_for_the_cores_do_not_count_as_waiting() -> None:
    times = {"fetch_seconds": 0.0008, "collate_seconds": 0.0001}
    crowd = starved(16, [hot("fetch", "w = (w - w.mean(0)) / w.std(0)", kind="io")], times)
    assert first(crowd).id == "input.too_many_workers"
    store = starved(4, [hot("fetch", "blob = ask(url)", kind="io", blocking=True)], {"fetch_seconds": 0.08})
    assert first(store).id == "input.too_few_workers"


@pytest.mark.parametrize(("traffic", "found"), [(6e7, True), (5e8, False)])
def test_a_disk_that_somebody_else_keeps_busy_is_no_cause(traffic: float, found: bool) -> None:
    """GIVEN a run that reads 50 MB/s WHEN most of the busy disk's traffic is another's THEN no finding."""
    disk = Disk("sda", busy_ratio=0.97, read_bytes_per_second=traffic)
    snapshot = snapshot_of(
        starved(2, []),
        host=host(io_pressure=Pressure(0.8), disks=(disk,)),
        processes=(trainer_process(read_bytes_per_second=5e7),),
    )
    assert bool(findings_of(snapshot, "input.disk_bound")) is found


def test_a_librarys_collate_is_nothing_the_author_could_write_otherwise() -> None:
    times = LOADED | {"collate_seconds": 0.018, "fetch_seconds": 0.001}
    assert first(starved(0, [], times, collate_own=True)).id == "input.slow_collate"
    foreign = first(starved(0, [], times, collate_own=False))
    assert foreign.id == "input.no_workers", "workers can do it meanwhile"


@pytest.mark.parametrize(
    ("workers", "stay", "id", "effect"),
    [
        (0, False, "input.no_workers", "in_expectation"),
        (1, False, "input.too_few_workers", "in_expectation"),
        (1, True, "input.too_few_workers", "identical"),
    ],
)
def test_workers_that_stay_shift_what_is_drawn_after_the_first_epoch(
    workers: int, stay: bool, id: str, effect: str
) -> None:
    """A loader whose workers stay draws no new seed at each epoch: the numbers are the same only where that
    does not change."""
    waiting = [hot("fetch", "time.sleep(0.01)", kind="sleep")]
    run = starved(workers, waiting, persistent_workers=stay)
    [found] = findings_of(snapshot_of(run), id)
    assert found.remedy.effect == effect


def test_a_loader_that_a_library_makes_is_not_the_authors_to_change() -> None:
    rows: dict[str, Any] = {"dataset_resident": True, "whole_batch_seconds": 0.002}
    assert first(starved(0, [], **rows, own=True)).id == "input.rows_one_by_one"
    assert not findings_of(snapshot_of(starved(0, [], **rows, own=False)), "input.rows_one_by_one")


def test_workers_that_validations_start_anew_are_part_of_the_cause() -> None:
    """GIVEN short epochs, each with a validation whose loader starts workers, too THEN both starts are one
    cause, and validating less often comes after it."""
    phases = {"data": 0.004, "forward": 0.006, "backward": 0.004, "validate": 0.008}
    config = loader_config(2, epochs_started=60, workers_started=120, persistent_workers=False)
    scalars = {"loader.first_wait_s": 0.01}
    ends = {"loader.evaluation_starts": 60.0, "loader.evaluation_start_s": 0.03}
    run = run_of(phases, config=config, rank={"loader": loader(**LOADED), "scalars": scalars | ends})
    found = first(run)
    assert found.id == "input.workers_restarted" and "validation, too" in found.remedy.summary
    assert "for each validation: 60 and 60 times so far" in found.title
    run = run_of(phases, config=config, rank={"loader": loader(**LOADED), "scalars": scalars})
    (without,) = findings_of(snapshot_of(run), "input.workers_restarted") or (None,)
    assert found.speedup is not None and found.speedup.likely > 1.3
    assert without is None or without.speedup is None or without.speedup.likely < 1.2
