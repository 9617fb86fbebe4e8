"""The trainers' benchmark in slices: what is on file is kept, what is stale is measured again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.benchmarks import trainers as benchmark
from tests.benchmarks.trainers.ladders import LADDERS, defaults, settings
from tests.benchmarks.trainers.slices import Part, Slices, fingerprint


def parts(calls: list[str], code: str = "now", seconds: float = 1.0) -> list[Part]:
    def measure(name: str) -> dict[str, Any]:
        calls.append(name)
        return {"figure": name}

    return [Part(name, code, lambda name=name: measure(name), seconds) for name in ("a", "b", "c")]  # type: ignore[misc]


def test_it_stops_in_time_and_the_next_call_goes_on(tmp_path: Path) -> None:
    calls: list[str] = []
    all_parts = parts(calls, seconds=3600)
    # GIVEN one part on file, and minutes that are too few for another one
    assert Slices(tmp_path).measure(all_parts[:1])
    short = Slices(tmp_path, minutes=1)
    assert not short.measure(all_parts)
    assert calls == ["a"] and len(short.left(all_parts)) == 2
    assert short.sentence(all_parts) == "2 of 3 parts left, about 120 min: the same command goes on"
    # WHEN there is time THEN only what is missing is measured
    assert Slices(tmp_path).measure(all_parts)
    assert calls == ["a", "b", "c"]
    found = Slices(tmp_path).found(all_parts[1])
    assert found is not None and found["figure"] == "b" and {"date", "load_before"} <= set(found)


def test_parts_of_other_code_and_broken_files_are_measured_again(tmp_path: Path) -> None:
    calls: list[str] = []
    Slices(tmp_path).measure(parts(calls))
    (tmp_path / "b.json").write_text("{half")
    Slices(tmp_path).measure(parts(calls))
    assert calls == ["a", "b", "c", "b"]
    changed = parts(calls, code="later", seconds=3600)
    slices = Slices(tmp_path)
    assert len(slices.left(changed)) == 3
    assert slices.seconds(changed) < 60  # how long they took is still known


def test_every_recipe_has_its_parts_on_both_kinds_of_cpu(tmp_path: Path) -> None:
    names = [part.name for ladder in LADDERS for part in benchmark.parts_of(ladder, 1.0, tmp_path)]
    assert len(set(names)) == len(names) == 5 * 2 * 3
    assert "tom500-avx2-default" in names and "tcn-all-small" in names


def test_a_page_is_written_when_the_default_sizes_are_there(tmp_path: Path) -> None:
    # GIVEN figures of the default sizes, and nothing else
    ladder = LADDERS[0]
    rates = [100.0, 200.0, 500.0, *(600.0 for _ in defaults(ladder)[3:])]
    rows = [
        {"label": row.label, "samples_per_second": rate, "data_samples_per_second": 1000.0,
         "ratio": rate / 100, "interval": [rate / 101, rate / 99]}
        for row, rate in zip(defaults(ladder), rates, strict=True)
    ]  # fmt: skip
    figures = {
        "machine": {"cpu": "a CPU"},
        "rows": rows,
        "on_in_best": ["fused"],
        "largest_loss_difference": 1e-7,
        "over_document": [2.4, 2.5, 2.6],
        "arithmetic": {"operations_a_sample": 1.0, "operations_a_second": 1000.0},
        "phases": {},
        "left": {"products": 0.5, "copies": 0.2},
        "batch_size": 10,
        "all_cores": [3.9, 4.0, 4.1],
    }
    all_parts = [
        Part(part.name, part.code, lambda: figures, 1.0) for part in benchmark.parts_of(ladder, 1.0, tmp_path)
    ]
    slices = Slices(tmp_path / "kept")
    assert slices.measure([part for part in all_parts if part.name.endswith("default")])
    # THEN the page has them, the goal is judged, and what is missing is called so
    assert benchmark.write(ladder, slices, all_parts, tmp_path)
    page = (tmp_path / "trainers_tcn.md").read_text(encoding="utf-8")
    assert "| ×4.0 | ×5.00 |" in page and page.count("not measured with this code yet") == 4


def test_another_recipe_or_size_is_other_code() -> None:
    one, two = LADDERS[:2]
    prints = {
        fingerprint(one.name, settings(one)),
        fingerprint(two.name, settings(two)),
        fingerprint(one.name, 1),
    }
    assert len(prints) == 3
