"""A run as named figures and texts: what `gpumon track` writes into a tracker."""

from __future__ import annotations

from typing import Any

from monitor.catalog.dossier import Dossier
from monitor.document.markdown import run_markdown
from monitor.document.run_page import run_page
from monitor.model.run import Run, Window

PREFIX = "gpumon"


def tracked(dossier: Dossier) -> dict[str, Any]:
    """Without its trackers, which the caller adds; see sdk/track.py."""
    run = dossier.run
    return {
        "steps": run.steps,
        "ended": run.ended or dossier.written,
        "failed": run.state in ("failed", "killed"),
        "figures": _named(_of_run(run)),
        "points": [_point(one) for one in run.timeline if one.steps],
        "texts": _texts(dossier),
        "markdown": run_markdown(dossier),
        "html": run_page(dossier),
    }


def _named(figures: dict[str, float | None]) -> dict[str, float]:
    """Unknown figures are left out."""
    return {f"{PREFIX}/{name}": float(value) for name, value in figures.items() if value is not None}


def _of_run(run: Run) -> dict[str, float | None]:
    return {
        "steps_per_second": run.iterations_per_second,
        "samples_per_second": run.samples_per_second,
        "tokens_per_second": run.tokens_per_second,
        "step_p50_seconds": run.step.p50,
        "step_p95_seconds": run.step.p95,
        "setup_seconds": run.setup_seconds,
        "starved_ratio": run.starved_ratio,
        "predicted_speedup": run.combined.likely if run.combined is not None else None,
        **{f"phase/{phase.name}_ratio": phase.share for phase in run.phases},
    }


def _point(window: Window) -> dict[str, Any]:
    figures = {
        "samples_per_second": window.samples_per_second,
        "step_p50_seconds": window.step_p50,
        "step_p95_seconds": window.step_p95,
        "starved_ratio": window.starved_ratio,
        **{f"phase/{name}_ratio": share for name, share in window.phases.items()},
    }
    return {"step": window.first_step, "time": window.start, "figures": _named(figures)}


def _texts(dossier: Dossier) -> dict[str, str]:
    """The verdict, and a remedy for each finding."""
    found = {f"{PREFIX}/run": dossier.run.id, f"{PREFIX}/verdict": dossier.sentence}
    return found | {
        f"{PREFIX}/finding/{one.id}": f"{one.title}. {one.remedy.summary}".strip() for one in dossier.findings
    }
