"""`--probe` of `gpumon run` and `gpumon analyze`: short delays at random steps show what is critical."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from monitor.model.errors import UserError

if TYPE_CHECKING:
    from monitor.report.report import Report

BUDGET = 0.02
"""All delays, as a share of the time."""
MOST_BUDGET = 0.2
"""Beyond this they would be the run."""
TOO_SHORT = "Criticality: not known, the run was too short for any delay."


def configure(parser: argparse.ArgumentParser, budget: float = BUDGET) -> None:
    parser.add_argument(
        "--probe", action="store_true", help="short delays in random steps, to see which parts are critical"
    )
    parser.add_argument(
        "--probe-budget", type=float, default=budget, metavar="SHARE",
        help=f"all delays as a share of the time (default: {budget})",
    )  # fmt: skip


def environment(args: argparse.Namespace) -> dict[str, str]:
    """For the command that is run."""
    if not args.probe:
        return {}
    if not 0.0 < args.probe_budget <= MOST_BUDGET:
        raise UserError(f"--probe-budget must be above 0 and at most {MOST_BUDGET}, not {args.probe_budget}")
    return {"GPUMON_TRIAL": json.dumps({"probe": args.probe_budget})}


def is_missing(args: argparse.Namespace, report: Report) -> bool:
    """It was asked for, and the report says nothing about it."""
    trained = report.run is not None and report.run.steps
    return bool(args.probe and trained and report.run is not None and not report.run.criticality)
