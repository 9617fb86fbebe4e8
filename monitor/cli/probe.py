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
        "--probe-budget", type=float, default=None, metavar="SHARE",
        help=f"all delays as a share of the time (default: {budget})",
    )  # fmt: skip
    parser.set_defaults(usual_budget=budget)


def environment(args: argparse.Namespace) -> dict[str, str]:
    """For the command that is run."""
    budget = args.usual_budget if args.probe_budget is None else args.probe_budget
    if not 0.0 < budget <= MOST_BUDGET:
        raise UserError(f"--probe-budget must be above 0 and at most {MOST_BUDGET}, not {budget}")
    if not args.probe:
        if args.probe_budget is not None:
            raise UserError("--probe-budget has no effect without --probe", hint="add --probe")
        return {}
    return {"GPUMON_TRIAL": json.dumps({"probe": budget})}


def is_missing(args: argparse.Namespace, report: Report) -> bool:
    """It was asked for, and the report says nothing about it."""
    trained = report.run is not None and report.run.steps
    return bool(args.probe and trained and report.run is not None and not report.run.criticality)
