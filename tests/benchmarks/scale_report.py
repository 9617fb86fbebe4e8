"""The scale benchmark's page: what was measured, and the arithmetic that carries it to 1,000 nodes."""

from __future__ import annotations

from typing import Any

NODES = 1000
EVERY = 15
"""Seconds between two scrapes in production."""
ROW = "| {} | {} | {} | {} | {} | {} | {} | {} | {} |"


def table(result: dict[str, Any]) -> str:
    return "\n".join([*_measured(result), *_carried(result), ""])


def _measured(result: dict[str, Any]) -> list[str]:
    levels = result["levels"]
    lines = [
        "# Scale: from a few machines to a thousand",
        "",
        f"`{result['command']}` on {result['date']}, {result['machine']}.",
        "",
        f"{levels[0]['nodes']} daemons on loopback, each with {result['gpus_per_node']} simulated GPUs and a replayed run (10 steps/s "
        f"a rank), snapshots every second, scraped every {result['scrape_seconds']} s by one Prometheus that evaluates all rules and "
        "remote-writes everything to one VictoriaMetrics. All of it shares this machine, so CPU is noisy; series are exact.",
        "",
        "| ranks a node | series a node | page, gzip | scrape p50 | scrape worst | daemon CPU | daemon RSS | Prometheus CPU | VictoriaMetrics CPU |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in levels:
        lines.append(ROW.format(
            one["ranks"], f"{one['series_per_node']:,}", f"{one['page_bytes_gzip'] / 1024:.1f} KiB", f"{one['scrape_ms']:.1f} ms",
            f"{one['scrape_ms_worst']:.1f} ms", f"{one['daemon_cpu_percent']:.2f} %", f"{one['daemon_rss_mib']:.0f} MiB",
            f"{one['prometheus_cpu_percent']:.1f} %", f"{one['central_cpu_percent']:.1f} %"))  # fmt: skip
    return [*lines, "", "CPU is of one core. " + _soundness(levels), ""]


def _soundness(levels: list[dict[str, Any]]) -> str:
    down = sum(one["targets_down"] for one in levels)
    lost = sum(one["samples_lost"] for one in levels)
    pairs = ", ".join(f"{one['series_central']:,} of {one['series_scraped']:,}" for one in levels)
    recorded = ", ".join(str(one["recorded_per_node"]) for one in levels)
    return (
        f"The recording rules add {recorded} series a node. Targets that did not answer: {down}. "
        f"Samples lost on the way to the centre: {lost}. Series that arrived there: {pairs}."
    )


def _carried(result: dict[str, Any]) -> list[str]:
    lines = [
        f"## Carried to {NODES:,} nodes × {result['gpus_per_node']} GPUs",
        "",
        f"On paper, scraped every {EVERY} s. With *S* series a node, *B* bytes a page, *P* and *V* the CPU of Prometheus and VictoriaMetrics "
        f"in this test at *R* = nodes × S / {result['scrape_seconds']} samples a second:",
        "",
        f"- active series = {NODES:,} × S;  samples/s = {NODES:,} × S / {EVERY};  scrape traffic = {NODES:,} × B / {EVERY}",
        "- CPU of Prometheus (scrape, rules, remote write) = P / R × samples/s;  of VictoriaMetrics (ingest) = V / R × samples/s",
        "- both are scaled in proportion, idle cost included: an upper bound, the closer the larger the level",
        "- memory of Prometheus = growth of its RSS between the smallest and the largest level, per series, × active series",
        "- disk = 1 byte a sample × samples/s × 86,400 × 30; the 1 byte is assumed, not measured: blocks of this short test hold a "
        "handful of samples each, most of them header (7 to 11 bytes a sample here)",
        "",
        "| ranks a node | active series | samples/s | scrape traffic | Prometheus CPU | Prometheus memory | VictoriaMetrics CPU | disk, 30 days | all daemons |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_carried_row(one, result) for one in result["levels"]]
    return [*lines, "", *_reading(result)]


def _carried_row(one: dict[str, Any], result: dict[str, Any]) -> str:
    series = NODES * one["series_per_node"]
    rate = series / EVERY
    here = one["nodes"] * one["series_per_node"] / result["scrape_seconds"]
    memory = memory_per_series(result)
    return ROW.format(
        one["ranks"],
        f"{series / 1e6:.2f} M",
        f"{rate:,.0f}",
        f"{NODES * one['page_bytes_gzip'] / EVERY / 2**20:.1f} MiB/s",
        f"{one['prometheus_cpu_percent'] / here * rate / 100:.1f} cores",
        "—" if memory is None else f"{memory * series / 2**30:.1f} GiB",
        f"{one['central_cpu_percent'] / here * rate / 100:.1f} cores",
        f"{rate * 86_400 * 30 / 2**30:,.0f} GiB",
        f"{NODES * one['daemon_cpu_percent'] / 100:.1f} cores over {NODES:,} machines",
    )


def memory_per_series(result: dict[str, Any]) -> float | None:
    """Bytes of Prometheus for one more series, from two levels; None when they tell nothing."""
    small, large = result["levels"][0], result["levels"][-1]
    more = large["series_scraped"] - small["series_scraped"]
    grown = (large["prometheus_rss_mib"] - small["prometheus_rss_mib"]) * 2**20
    return grown / more if more > 0 and grown > 0 else None


def _reading(result: dict[str, Any]) -> list[str]:
    memory = memory_per_series(result)
    per = f"about {memory / 1024:.1f} KiB a series in this test" if memory else "not measured with one level"
    return [
        "## What follows",
        "",
        "- With one rank a GPU (8 a node) a thousand nodes are about a million series: on paper one Prometheus can hold that. For safety and "
        "for long history let agents, one a rack, remote-write into VictoriaMetrics (deploy/prometheus/). No server of our own is needed.",
        f"- Memory of Prometheus is what ends first ({per}); agents keep only the write-ahead log.",
        "- 64 ranks a node is far more than one per GPU; there `--max-ranks` caps a node and `gpumon_metrics_left_out` counts the rest. "
        "Step-time buckets are 16 of a rank's series (a third): dropping `gpumon_rank_step_seconds_bucket` in the agent saves them.",
        "- A daemon's CPU is its own snapshots every second; a scrape every 15 s instead of every 5 s makes it less.",
    ]  # fmt: skip
