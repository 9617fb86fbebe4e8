"""The trainers' benchmark in slices: what is on file is kept, what is stale is measured again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import trainers as benchmark
from tests.benchmarks.trainers import left
from tests.benchmarks.trainers.ladders import BEST, LADDERS, NAIVE, Ladder, defaults, settings
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


def default_figures(ladder: Ladder) -> dict[str, Any]:
    """Of a recipe that is five times as fast in its best rung, half of that in products."""
    rates = [100.0, 200.0, 500.0, *(600.0 for _ in defaults(ladder)[3:])]
    rows = [
        {"label": row.label, "samples_per_second": rate, "data_samples_per_second": 1000.0,
         "ratio": rate / 100, "interval": [rate / 101, rate / 99]}
        for row, rate in zip(defaults(ladder), rates, strict=True)
    ]  # fmt: skip
    return {
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


def recipe_parts(ladder: Ladder, folder: Path) -> list[Part]:
    figures = default_figures(ladder)
    return [
        Part(part.name, part.code, lambda: figures, 1.0) for part in benchmark.parts_of(ladder, 1.0, folder)
    ]


def test_a_page_is_written_when_the_default_sizes_are_there(tmp_path: Path) -> None:
    # GIVEN figures of the default sizes, and nothing else
    ladder = LADDERS[0]
    all_parts = recipe_parts(ladder, tmp_path)
    slices = Slices(tmp_path / "kept")
    assert slices.measure([part for part in all_parts if part.name.endswith("default")])
    # THEN the page has them, the goal is judged, and what is missing is called so
    assert benchmark.write(ladder, slices, all_parts, tmp_path)
    page = (tmp_path / "trainers_tcn.md").read_text(encoding="utf-8")
    assert "| ×4.0 | ×5.00 |" in page and page.count("not measured with this code yet") == 4
    assert "With all cores for both, naive → best is ×4.00 (3.90–4.10)." in page
    # AND it says what is left: half of 20 ms are products, so without the rest it would be ×10
    assert "| 20.0 ms | 50% | 20% | 0% | 0% | 0% | 100% | ×10.00 | ×10.00 |" in page


@pytest.mark.parametrize(
    ("products", "operations", "reason"),
    [(1.0, 1.0, "the products alone"), (0.1, 1.0, "neither limit"), (0.1, 4.0, "even the multiplications")],
)
def test_a_goal_that_was_missed_has_its_reason(products: float, operations: float, reason: str) -> None:
    figures = default_figures(LADDERS[0])
    rows = {row["label"]: row for row in figures["rows"]}
    work = {"operations_a_sample": operations, "operations_a_second": 1000.0}
    part = {**figures, "left": {"products": products}, "arithmetic": work}
    part["left_facts"] = left.facts(part, rows[BEST], rows[NAIVE])
    goal = {"what": "naive → best", "kind": "k", "least": 6.0, "ratio": 5.0, "met": False}
    page = "\n".join(left.lines({"kinds": {"k": {"default": part}}, "goals": [goal]}))
    assert f"- naive → best: ×5.00 of ×6.0; {reason}" in page


def test_pages_are_written_anew_from_old_parts_and_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ladder = LADDERS[0]
    all_parts, slices = recipe_parts(ladder, tmp_path), Slices(tmp_path / "kept")
    # GIVEN nothing on file THEN the page stays
    benchmark.rewrite(ladder, slices, all_parts, tmp_path)
    assert "stays as it is: tcn-all-default, tcn-avx2-default not on file" in capsys.readouterr().out
    # GIVEN one part of earlier code
    old, new = (part for part in all_parts if part.name.endswith("default"))
    assert slices.measure([replace(old, code="earlier"), new])
    benchmark.rewrite(ladder, slices, all_parts, tmp_path)
    # THEN both the command and the page name it
    assert "of earlier code: tcn-all-default\n" in capsys.readouterr().out
    page = (tmp_path / "trainers_tcn.md").read_text(encoding="utf-8")
    assert "Measured with earlier code: tcn-all-default (" in page


def test_another_recipe_or_size_is_other_code() -> None:
    one, two = LADDERS[:2]
    prints = {
        fingerprint(one.name, settings(one)),
        fingerprint(two.name, settings(two)),
        fingerprint(one.name, 1),
    }
    assert len(prints) == 3
