"""It takes a long time to reach the first step.

Looks at: time from the start of the process to its first step.
Why: While data is parsed or downloaded and models are built, the GPU is allocated but idle, again on
    every restart.
Remedy: cache the prepared data, load lazily, set up before asking for the GPU.
Gain: of the whole run's time, not of the step.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import hot_lines
from monitor.advice.prediction.gain import speedup
from monitor.advice.rule import Advice, rule
from monitor.model import units

SAVED, DOUBT = 0.8, 1.2
"""Share of the set-up that a cache saves, and the factor for the highest gain. Judgement."""


@rule("job.long_setup", "Long set-up", steps=False)
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
    gain = max(1.0, whole / (whole - SAVED * setup)) if whole > SAVED * setup else 1.0
    return Advice(
        title=f"Long set-up: {units.seconds(setup)} before the first step"
        + (f" ({units.percent(share)} of the run)" if first is not None else ", not reached yet"),
        detail=f"most of it in {spot.text}" if spot else "",
        remedy="Prepare the data once and cache it (parsed, tokenised, as tensors or memory-mapped); load "
        "the rest lazily.",
        effect="identical",
        price="disk for what is kept",
        evidence={"setup_seconds": setup, "setup_share": share, **hot_lines.evidence(run, spot)},
        speedup=speedup(1.0, gain, DOUBT * gain, "of the whole run's time") if not run.live else None,
        share=share,
        severity="warning" if long else "hint",
    )
