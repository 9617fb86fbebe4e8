"""It takes long until the first step.

Looks at: time from the start of the process to its first step.
Why: While data is parsed or downloaded and models are built, the GPU is allocated and idle; on every
    restart again.
Remedy: cache the prepared data, load lazily, set up before asking for the GPU.
Gain: of the whole run's time, not of the step.
"""

from __future__ import annotations

from monitor.advice import hotlines
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.snapshot import Speedup


@rule("job.long_setup", steps=False)
def check(run: RunContext) -> Advice | None:
    first = run.run.first_step_time
    until = first if first is not None else run.snapshot.time
    setup = until - run.run.started
    whole = (run.run.ended or run.snapshot.time) - run.run.started
    share = setup / whole if whole > 0 else 0.0
    long = setup >= run.policy.setup_seconds
    dominant = not run.live and share >= run.policy.setup_share and setup >= run.policy.setup_short_seconds
    if not (long or dominant) or (first is None and not run.live):
        return None
    spot = run.hot("setup")
    where = f"; most of it in {spot.words}" if spot else ""
    gain = whole / max(1e-9, whole - 0.8 * setup) if not run.live else 1.0
    return Advice(
        title=f"Long set-up: {seconds(setup)} before the first step"
        + (f" ({percent(share)} of the run)" if first is not None else ", still none")
        + where,
        remedy="Prepare the data once and cache it (parsed, tokenised, as tensors or memory-mapped); load "
        "the rest lazily.",
        change="+ if cache.exists(): data = torch.load(cache)\n  else: data = prepare(…); torch.save(data, "
        "cache)",
        evidence={"setup_seconds": setup, "setup_share": share, **hotlines.evidence(run, spot)},
        speedup=Speedup(
            1.0, round(max(1.0, gain), 3), round(max(1.0, gain * 1.2), 3), "of the whole run's time"
        ),
        severity="warning" if long else "hint",
    )
