"""All runs as a page, newest first, each linked to its report and to a comparison with the previous run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote, urlencode

from monitor.catalog.rows import RunRow
from monitor.document.markup import Markup, document, join, tag
from monitor.document.parts import style, table
from monitor.language import word
from monitor.model.units import ago, duration, number, seconds, whole

HEAD = ("run", "state", "steps", "samples/s", "step", "lasted", "started", "finding", "")


def list_page(rows: Sequence[RunRow], ways: Markup) -> str:
    before = _forerunners(rows)
    lines = [_line(row, before.get(row)) for row in rows]
    body = table(HEAD, lines, figures=(2, 3, 4, 5, 6), stacks=True) if rows else _empty()
    heading = tag("header", ways, tag("h1", word("Runs")))
    return document("gpumon: runs", style(), join((heading, tag("main", tag("section", body)))))


def _empty() -> Markup:
    how = tag("pre", tag("code", "gpumon run -- python train.py"))
    return join((tag("p", "No training run has been seen yet. Start one:"), how))


def _forerunners(rows: Sequence[RunRow]) -> dict[RunRow, RunRow]:
    """Run → the previous run of the same name."""
    found, later = {}, dict[str, RunRow]()
    for row in rows:
        if row.name in later:
            found[later[row.name]] = row
        later[row.name] = row
    return found


def _line(row: RunRow, before: RunRow | None) -> list[Markup | str]:
    return [
        tag("a", row.name, href=address(row.run), title=row.run),
        tag("span", "hung" if row.state == "stalled" else row.state, class_=f"chip state-{row.state}"),
        whole(row.steps),
        number(row.samples_per_s),
        seconds(row.step_p50_s),
        duration(row.elapsed_seconds),
        ago(row.started),
        tag("code", row.findings[0]) if row.findings else "",
        join(_compare(row, before)),
    ]


def address(run: str) -> str:
    return f"/runs/{quote(run, safe='')}"


def _compare(row: RunRow, before: RunRow | None) -> Iterator[Markup]:
    if before is not None:
        question = urlencode({"a": before.run, "b": row.run})
        yield tag("a", "compare with previous", href=f"/compare?{question}")


def not_found_page(sentence: str, ways: Markup) -> str:
    heading = tag("header", ways, tag("h1", word("Not found")))
    said = tag("main", tag("section", tag("p", sentence)))
    return document("gpumon: not found", style(), join((heading, said)))
