"""The scale benchmark, small: two nodes, scraped and remote-written to a real VictoriaMetrics."""

from __future__ import annotations

import pytest

from tests.benchmarks import scale
from tests.benchmarks.scale_report import table
from tests.conftest import require_program

pytestmark = pytest.mark.slow


def test_everything_scraped_arrives_in_the_centre(monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("prometheus", "victoria-metrics"):
        require_program(program)
    monkeypatch.setattr(scale, "EVERY", 1)
    monkeypatch.setattr(scale, "WARM_UP", 8.0)
    level = scale.measure(ranks=8, nodes=2, seconds=4.0)
    assert scale.sound(level), level
    assert 800 < level.series_per_node < 2000


def made_up(ranks: int) -> dict[str, float]:
    shared = {"nodes": 2, "page_bytes_gzip": 15_360, "scrape_ms": 5.0, "scrape_ms_worst": 9.0}
    costs = {
        "daemon_cpu_percent": 1.0,
        "daemon_rss_mib": 40.0,
        "prometheus_cpu_percent": 2.0,
        "rules_ms": 30.0 * ranks,
        "central_cpu_percent": 1.0,
    }
    sound = {
        "series_scraped": 2000 * ranks,
        "series_central": 2000 * ranks,
        "samples_lost": 0,
        "targets_down": 0,
        "recorded_per_node": 60,
    }
    own = {"ranks": ranks, "series_per_node": 1000 * ranks, "prometheus_rss_mib": 100.0 * ranks}
    return {**shared, **costs, **sound, **own}


def test_the_page_shows_its_arithmetic() -> None:
    about = {"command": "x", "date": "d", "machine": "m", "gpus_per_node": 8, "scrape_seconds": 5}
    page = table({**about, "levels": [made_up(1), made_up(2)]})
    assert "| 1 | 1.06 M | 1.81 M | 70,667 | 1.0 MiB/s | 3.3 cores | 88.4 GiB | 15.0 s | 2 |" in page
    assert "15.0 s at 1, 30.0 s at 2 ranks a node, of 15 s" in page and "each of 4 groups" in page
