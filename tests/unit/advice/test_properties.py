"""Whatever the snapshot: no rule raises, no prediction is below 1, removing a cause never raises one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.advice.engine import Engine
from monitor.advice.prediction.gain import ratio
from monitor.advice.prediction.step_model import Change, Saving, StepModel, combine, scaled
from monitor.model import facts, units
from monitor.model.finding import Finding
from monitor.model.gpu import Gpu, GpuProcess, Source
from monitor.model.host import Cpu, Host, Memory
from monitor.model.run import Device, LoaderTimes, Phase, Rank, Run, Stall, Times, Window
from monitor.model.snapshot import Snapshot, encode
from sdk.ring import PHASES
from tests.unit.advice.limits import check_limits, check_union

maybe = st.none()
number = st.one_of(st.just(0.0), st.floats(1e-7, 1e4))
share = st.floats(0, 1)
whole = st.integers(0, 10**6)
name = st.sampled_from([*PHASES, "other", "my phase"])
text = st.sampled_from(
    ["", "x.item()", "gc.collect()", "time.sleep(1)", "torch.save(m, p)", "p.grad.norm()", "model(x)"]
)
junk = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 99), st.floats(allow_nan=True), st.text(max_size=4), st.just([])
)

hotspot = st.one_of(
    junk,
    st.fixed_dictionaries(
        {"phase": name, "share": st.one_of(share, junk), "code": text},
        optional={
            "function": st.text(max_size=5),
            "line": junk,
            "kind": st.sampled_from(["cpu", "io", "sleep", "module"]),
            "calls": junk,
        },
    ),
)
KEYS = {
    "loader": [
        "num_workers",
        "batch_size",
        "prefetch_factor",
        "persistent_workers",
        "epochs_started",
        "workers_started",
        "dataset",
        "dataset_len",
        "collate",
    ],
    "optimizer": ["class", "fused", "foreach", "param_groups"],
    "model": ["dtype", "modules", "parameters", "parameter_bytes", "checkpointing"],
    "precision": ["autocast", "matmul_tf32"],
    "compile": ["used", "graphs", "failed", "recompiles", "graph_breaks"],
    "threads": ["torch", "omp_env"],
}
config = st.fixed_dictionaries(
    {},
    optional={
        **{
            key: st.one_of(junk, st.dictionaries(st.sampled_from(inner), junk)) for key, inner in KEYS.items()
        },
        "hotspots": st.one_of(junk, st.lists(hotspot, max_size=6)),
        "device": st.sampled_from(["cpu", "cuda:0", "", None]),
        "cpu_affinity": junk,
        "anomaly": junk,
    },
)
times = st.builds(
    Times, count=whole, mean=maybe | number, p50=maybe | number, p95=maybe | number, max=maybe | number
)
phase = st.builds(
    Phase, name=name, share=share, mean_seconds=number, p50_seconds=maybe | number, p95_seconds=maybe | number
)
stall = st.builds(
    Stall,
    kind=st.sampled_from(["gc", "data", "recompile", "validate", "epoch_start", "forward"]),
    count=st.integers(1, 99),
    total_seconds=number,
    share=share,
    every_steps=maybe | st.floats(1, 99),
    mean_seconds=maybe | number,
)
loader = st.builds(
    LoaderTimes,
    batches=whole,
    sampler_seconds=maybe | number,
    fetch_seconds=maybe | number,
    getitem_seconds=maybe | number,
    collate_seconds=maybe | number,
)
scalar = st.sampled_from(
    [
        "gc.seconds",
        "cuda.max_allocated_bytes",
        "cuda.alloc_retries",
        "dynamo.recompiles",
        "loader.fetch_cpu_ratio",
    ]
)
rank = st.builds(
    Rank,
    rank=st.integers(0, 3),
    state=st.sampled_from(["running", "ended", "killed"]),
    pid=st.integers(1, 9),
    steps=whole,
    lost=whole,
    samples=whole,
    step=times,
    whole=times,
    phases=st.lists(phase, max_size=5).map(tuple),
    loader=loader,
    scalars=st.dictionaries(scalar, st.floats()),
    last_step_time=maybe | number,
    device_times=st.builds(Device, starved_ratio=maybe | share, lag_seconds=maybe | number),
    overhead_ratio=maybe | share,
    gpu_uuid=st.sampled_from([None, "a"]),
)
window = st.builds(
    Window,
    start=number,
    seconds=number,
    first_step=whole,
    steps=whole,
    step_p50=maybe | number,
    phases=st.dictionaries(name, share, max_size=3),
    rss_bytes=maybe | whole,
    sm_clock_hertz=maybe | number,
)
run = st.builds(
    Run,
    id=st.sampled_from(["r", "s"]),
    name=st.just("r"),
    state=st.sampled_from(["running", "stalled", "ended", "failed", "killed"]),
    started=number,
    ranks=st.lists(rank, max_size=3).map(tuple),
    ended=maybe | number,
    first_step_time=maybe | number,
    world_size=st.integers(0, 4),
    config=config,
    steps=whole,
    lost=whole,
    batch_size=maybe | st.integers(0, 4096),
    stalls=st.lists(stall, max_size=3).map(tuple),
    timeline=st.lists(window, max_size=9).map(tuple),
    gpu_uuids=st.sampled_from([(), ("a",)]),
)
gpu = st.builds(
    Gpu,
    index=st.integers(0, 3),
    uuid=st.just("a"),
    state=st.sampled_from(["ok", "lost"]),
    utilization_ratio=maybe | share,
    memory_used_bytes=maybe | whole,
    memory_total_bytes=maybe | whole,
    sm_clock_hertz=maybe | number,
    sm_clock_max_hertz=maybe | number,
    throttle=maybe | st.dictionaries(st.sampled_from(["sw_power_cap", "hw_slowdown"]), st.booleans()),
    processes=st.lists(
        st.builds(GpuProcess, pid=st.integers(1, 9), memory_bytes=maybe | whole), max_size=2
    ).map(tuple),
)
host = st.builds(
    Host,
    hostname=st.just("h"),
    cpu=maybe | st.builds(Cpu, cores=st.integers(1, 64), utilization_ratio=maybe | share),
    memory=maybe
    | st.builds(
        Memory,
        total_bytes=whole,
        available_bytes=whole,
        used_bytes=whole,
        swap_in_bytes_per_second=maybe | number,
    ),
)
snapshots = st.builds(
    Snapshot,
    seq=st.just(1),
    time=number,
    monotonic=number,
    interval_seconds=st.just(1.0),
    source=st.just(Source("none")),
    host=host,
    gpus=st.lists(gpu, max_size=2).map(tuple),
    runs=st.lists(run, max_size=2).map(tuple),
)


@pytest.mark.slow
@given(st.lists(snapshots, min_size=1, max_size=3))
def test_no_snapshot_breaks_the_engine(given_snapshots: list[Snapshot]) -> None:
    engine = Engine()
    for snapshot in given_snapshots:
        judged = facts.complete(engine.evaluate(facts.join(snapshot)))
        encode(judged)
        for finding in judged.findings:
            check_finding(finding)
        for run in judged.runs:
            check_combined(run, facts.findings_of(run, judged.findings))


def check_finding(finding: Finding) -> None:
    assert finding.headline and finding.cause and finding.title.startswith(finding.headline)
    words = (finding.title, finding.remedy.summary, finding.speedup.why if finding.speedup else "")
    assert not any(units.ABSENT in text or "unknown" in text for text in words), "a sentence needs its figure"
    if finding.speedup is not None:
        assert 1.0 <= finding.speedup.low <= finding.speedup.likely <= finding.speedup.high
    check_limits(finding)


def check_combined(run: Run, findings: tuple[Finding, ...]) -> None:
    serious = [one.speedup for one in findings if one.severity in ("critical", "warning")]
    gains = [gain for gain in serious if gain and gain.likely > 1.0]
    if not gains:
        assert run.combined is None
        return
    assert run.combined is not None and run.verdict is not None
    assert 1.0 <= run.combined.low <= run.combined.likely <= run.combined.high
    assert run.combined.likely >= max(gain.likely for gain in gains)
    check_union(run, findings)


seconds = st.floats(1e-5, 1.0)
models = st.builds(
    StepModel,
    parts=st.dictionaries(name.filter(lambda n: n != "data"), seconds, min_size=1, max_size=4),
    wait=seconds,
    work=seconds,
    work_cpu=st.floats(0.05, 1.0),
    workers=st.integers(0, 8),
    cores=st.floats(1, 16),
    threads=st.floats(1, 4),
)
changes = st.builds(
    Change,
    savings=st.lists(
        st.builds(Saving, part=name, seconds=seconds, cause=st.sampled_from("abc")), max_size=3
    ).map(tuple),
    work_left=st.floats(0, 1),
    batch=st.floats(1, 8),
    everything=st.floats(0.2, 1),
)


@given(models, changes)
def test_a_prediction_is_at_least_one(model: StepModel, change: Change) -> None:
    assert ratio(model, change) >= 1.0


@given(models, changes, st.floats(0, 1))
def test_less_of_a_change_never_gains_more(model: StepModel, change: Change, part: float) -> None:
    only_savings = Change(savings=change.savings, work_left=change.work_left)
    assert ratio(model, scaled(only_savings, part)) <= ratio(model, only_savings) * (1 + 1e-9)


@given(models, changes, changes)
def test_removing_a_cause_never_raises_the_prediction(
    model: StepModel, first: Change, second: Change
) -> None:
    one, two = (Change(savings=change.savings, work_left=change.work_left) for change in (first, second))
    assert ratio(model, combine([one, two])) >= ratio(model, one) * (1 - 1e-9)


@given(models, seconds, name.filter(lambda n: n != "data"))
def test_a_second_is_counted_once(model: StepModel, amount: float, part: str) -> None:
    twice = combine([Change(savings=(Saving(part, amount, "same"),))] * 2)
    assert ratio(model, twice) == ratio(model, Change(savings=(Saving(part, amount, "same"),)))


def test_a_loader_behind_compute_gains_nothing() -> None:
    hidden = StepModel(parts={"forward": 0.1}, wait=0.0, work=0.05, workers=2, cores=8.0)
    assert ratio(hidden, Change(work_left=0.1)) == 1.0
    assert ratio(hidden, Change(workers=8)) == 1.0


def test_more_workers_follow_work_over_workers_until_the_cores_are_full() -> None:
    model = StepModel(parts={"forward": 0.01}, wait=0.04, work=0.04, workers=0, cores=16.0, handover=0.0)
    periods = [model.apply(Change(workers=count)).period for count in (1, 2, 4, 8)]
    assert periods == [0.04, 0.02, 0.01, 0.01]
    few: dict[str, Any] = {
        "parts": {"forward": 0.01},
        "wait": 0.04,
        "work": 0.04,
        "cores": 2.0,
        "handover": 0.0,
    }
    assert StepModel(**few).apply(Change(workers=16)).period == 0.025
