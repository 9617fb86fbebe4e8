"""Which page of `/metrics` a scrape gets: made once, ahead of it, in the format it asks for, and cheaply."""

from __future__ import annotations

import gzip
import time

import pytest

from monitor.model.snapshot import Snapshot
from monitor.web.exposition import Writer
from monitor.web.families import FAMILIES
from monitor.web.families.base import Family, Limits, Own, Sample, Scene, make_scene
from monitor.web.metrics import Metrics, is_openmetrics, negotiate
from tests import scene
from tests.conftest import undisturbed


def test_a_page_is_rendered_once_per_snapshot_and_format() -> None:
    metrics = Metrics(Own(), Limits())
    first = metrics.page(scene.snapshot(1), openmetrics=False)
    assert metrics.page(scene.snapshot(1), openmetrics=False) is first
    assert metrics.page(scene.snapshot(2), openmetrics=False) is not first
    assert gzip.decompress(first.body(True)) == first.plain
    assert first.body(True) is first.body(True)


def test_the_next_page_is_made_ahead_for_who_asked_for_the_last() -> None:
    """GIVEN somebody who asked for a page WHEN there is another snapshot THEN its page is ready, in the same
    format, before it is asked for; and not if nobody asked for the last one."""
    metrics = Metrics(Own(), Limits())
    metrics.prepare(scene.snapshot(1))
    assert not metrics._pages
    metrics.page(scene.snapshot(1), openmetrics=True).body(True)
    metrics.prepare(scene.snapshot(2))
    ahead = metrics._pages[True]
    assert (ahead.seq, ahead.asked) == (2, False) and ahead.packed is not None
    metrics.prepare(scene.snapshot(3))
    assert metrics._pages == {True: ahead}
    assert metrics.page(scene.snapshot(2), openmetrics=True) is ahead


def test_a_page_that_cannot_be_made_ahead_is_answered_with_its_failure() -> None:
    """GIVEN a family that fails WHEN the next page is made ahead THEN ticks go on, and who asks is told."""

    def broken(made: Scene) -> list[Sample]:
        if made.snapshot.seq > 1:
            raise ValueError("no such reading")
        return [((), 1.0)]

    family = Family("gpumon_made_up", "gauge", "Made up.", (), broken, "test", "1")
    metrics = Metrics(Own(), Limits(), (family,))
    assert b"gpumon_made_up 1.0" in metrics.page(scene.snapshot(1), openmetrics=False).plain
    metrics.prepare(scene.snapshot(2))
    with pytest.raises(ValueError, match="no such reading"):
        metrics.page(scene.snapshot(2), openmetrics=False)


def test_a_page_made_ahead_serves_the_snapshot_before_it_too() -> None:
    """A scrape that comes between the new page and its snapshot gets the new page, not the old one anew."""
    metrics = Metrics(Own(), Limits())
    metrics.page(scene.snapshot(1), openmetrics=False)
    metrics.prepare(scene.snapshot(2))
    assert metrics.page(scene.snapshot(1), openmetrics=False).seq == 2


@undisturbed
def test_rendering_again_uses_the_lines_it_has() -> None:
    """Ratios within one test: a page like the last one costs less than the first, and four times the GPUs do
    not cost much more than four times as much."""
    few, many = (scene.changed(gpus=tuple(scene.gpu(n) for n in range(count))) for count in (8, 32))
    rounds = [_render_times(many, few) for _ in range(5)]
    fresh, again, small = map(min, zip(*rounds, strict=True))
    assert again < fresh
    assert again < 12 * small


def _render_times(many: Snapshot, few: Snapshot) -> tuple[float, float, float]:
    """A first page of `many`, a second one, and a second one of `few`."""
    large, small = Writer(FAMILIES, openmetrics=False), Writer(FAMILIES, openmetrics=False)
    wide, narrow = make_scene(many, Own(), Limits()), make_scene(few, Own(), Limits())
    small.render(narrow)
    return (
        _seconds(lambda: large.render(wide)),
        _seconds(lambda: large.render(wide)),
        _seconds(lambda: small.render(narrow)),
    )


def _seconds(work: object) -> float:
    begin = time.thread_time()
    assert callable(work)
    work()
    return time.thread_time() - begin


@pytest.mark.parametrize(
    ("accept", "openmetrics"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1", True),
        ("text/html, application/openmetrics-text", True),
        ("application/openmetrics-text;version=a", False),
        ("application/openmetrics-text;version=0.0.1", False),
        ("text/plain;version=1.0.0;escaping=allow-utf-8", False),
    ],
)
def test_content_negotiation(accept: str, openmetrics: bool) -> None:
    assert is_openmetrics(negotiate(accept)) is openmetrics
