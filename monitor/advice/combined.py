"""All remedies of a run at once."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.advice.context import RunContext
from monitor.advice.engine import judge
from monitor.advice.policy import DEFAULT_POLICY, Policy
from monitor.advice.whatif import combine, predict
from monitor.snapshot import Finding, Run, Snapshot, Speedup


def combined_speedup(
    snapshot: Snapshot, run: Run, findings: Sequence[Finding], policy: Policy = DEFAULT_POLICY
) -> Speedup | None:
    """What following every warning of the run would give, no second counted twice; None without any."""
    wanted = {finding.id for finding in findings if finding.severity in ("critical", "warning")}
    context = RunContext(snapshot, run, policy)
    changes = [one.change for one in judge(context) if one.finding.id in wanted and one.change is not None]
    if not changes:
        return None
    ids = ", ".join(sorted(wanted))
    return predict(context.model, combine(changes), None, None, f"all of: {ids}")
