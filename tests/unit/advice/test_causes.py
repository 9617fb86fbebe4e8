"""The cause itself comes first, at its line, with a fitting remedy; not one of its neighbours."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import msgspec

from monitor.advice.engine import Engine
from monitor.model.finding import Finding
from monitor.model.run import Stall
from monitor.report.report import make_report
from monitor.report.text import render
from tests.unit.advice.build import called, findings, first, hot, loader_config, piece, run_of, snapshot_of
from tests.unit.advice.shapes import looped, starved

LOOP = {"data": 0.0004, "forward": 0.003, "backward": 0.005, "optimizer": 0.0006}


def test_a_constant_is_named_with_its_function_and_where_it_is_asked_for() -> None:
    spot = hot("forward", "return D @ A @ D", kind="module", function="normalise", constant="normalise")
    spot["callers"] = [called("GCN.forward", 15, "An = normalise(A)")]
    found = first(run_of(LOOP | {"forward": 0.012}, config={"hotspots": [spot]}))
    assert found.id == "compute.constant_recomputed"
    assert "`normalise` returns the same" in found.title and "train.py:15" in found.remedy.summary
    assert not found.remedy.change, "in a model it is a buffer, not a line before the loop"


def test_lines_of_a_comprehension_belong_to_the_function_it_stands_in() -> None:
    spots = [
        hot(
            "between",
            "log(**{k: v.item() for k, v in losses.items()})",
            0.6,
            function="Trainer.step.<dictcomp>",
            job="sync",
        ),
        hot("between", "tell(**{k: w.item()})", 0.1, function="Trainer.step.<dictcomp>", line=9, job="sync"),
    ]
    scalars = {"sync.items_per_step": 70.0, "sync.seconds_per_step": 0.0001}
    run = run_of(LOOP | {"between": 0.004}, config={"hotspots": spots}, rank={"scalars": scalars})
    found = first(run)
    assert found.id == "compute.sync_every_step"
    assert found.evidence["sync_seconds_per_step"] > 0.002  # the lines, not only the reads on them


def test_lines_that_stand_together_in_the_loop_are_one_piece_of_code() -> None:
    spots = [
        hot("backward", "loss.backward()", function="train", line=10),
        hot("other", "for p in model.parameters():", 0.1, function="train", line=11),
        hot("other", "    total += p.abs().sum()", 0.3, function="train", line=12, calls=120),
        hot("other", "    peak = max(peak, p.max())", 0.3, function="train", line=13, calls=120),
        hot("other", "optimizer.step()", 0.2, function="train", line=20),
    ]
    found = first(run_of(LOOP | {"other": 0.009}, config={"hotspots": spots}))
    assert found.id == "compute.python_loop"
    assert "the loop in `train` (train.py)" in found.remedy.summary, "no line has most of it"
    assert found.evidence["hot_share_of_phase"] > 0.65


def test_a_loop_is_judged_by_the_lines_that_are_known_and_by_most_of_them() -> None:
    """GIVEN samples of some line of a function (line 0), of lines that need no earlier round, and of one that
    keeps the best so far THEN it is a loop; if most of it follows from the round before, it is none."""

    def found(in_turn: float) -> str:
        spots = [
            hot("forward", "", 0.3, line=0, once=True),
            hot("forward", "overlap = torch.minimum(anchors, box)", 0.6 - in_turn, line=8, calls=120),
            hot(
                "forward",
                "best = torch.where(better, overlap, best)",
                in_turn,
                line=9,
                calls=60,
                in_turn=True,
            ),
        ]
        return first(run_of(LOOP | {"forward": 0.012}, config={"hotspots": spots})).id

    assert found(in_turn=0.2) == "compute.python_loop"
    assert found(in_turn=0.5) != "compute.python_loop"


def test_layers_that_are_called_for_each_micro_batch_are_no_loop() -> None:
    """GIVEN a line in a block of a model of 30 modules that runs for each of 16 micro-batches THEN its many
    calls are as many as there are layers and micro-batches."""
    layers = hot("forward", "return self.out(x)", 0.6, kind="module", calls=240, function="Block.forward")
    config = {"hotspots": [layers], "model": {"modules": 30}}
    run = LOOP | {"forward": 0.012}
    assert first(run_of(run, config=config)).id == "compute.python_loop"
    assert first(run_of(run, config=config, micro_batches=16.0)).id != "compute.python_loop"


def test_a_loop_that_draws_is_the_same_in_expectation_only() -> None:
    """GIVEN a loop that chooses samples to compare, whose rounds need no earlier one WHEN a function it calls
    draws THEN all at once draws others."""
    free = {"function": "Pairs.choose", "batchable": ["pairs.py", 6]}
    loop = hot("forward", "far = distances[i] + margin", 0.6, calls=400, **free)
    pick = hot("forward", "return choice(far)", 0.1, line=3, calls=400, function="pick")
    pick["callers"] = [{"function": "Pairs.choose", "file": "pairs.py", "line": 7}]
    run = LOOP | {"forward": 0.012}
    for drawn, effect in ((False, "rounding"), (True, "in_expectation")):
        found = first(run_of(run, config={"hotspots": [loop, pick | {"random": drawn}]}))
        assert found.id == "compute.python_loop" and found.remedy.effect == effect
        assert "If each round needs the one before" not in found.remedy.summary


def test_a_loop_has_what_it_calls_and_leaves_a_round_of_it_for_each_round_around_it() -> None:
    """GIVEN a loop over tags whose operations are in two functions THEN it is as heavy as both; within a loop
    over words that hand on their state, more of it is left."""

    def found(**around: bool) -> Finding:
        free = {"batchable": ["crf.py", 6], "over_operations": True, "calls": 400} | around
        step = hot("forward", "found.append(likely(state + moves[tag]))", 0.45, function="sums", **free)
        sums = hot("forward", "return torch.logsumexp(row, 0)", 0.4, line=3, function="likely", **free)
        return first(run_of(LOOP | {"forward": 0.012}, config={"hotspots": [step, sums]}))

    alone, inner = found(), found(within_turns=True)
    assert alone.id == inner.id == "compute.python_loop"
    assert alone.evidence["hot_share_of_phase"] == inner.evidence["hot_share_of_phase"] == 0.85
    assert alone.remedy is not None and "Replace the loop at crf.py:6 by" in alone.remedy.summary
    assert alone.speedup is not None and inner.speedup is not None
    assert alone.speedup.likely > 1.2 * inner.speedup.likely > 1.2


def test_a_cluster_of_stalls_is_no_period() -> None:
    cluster = Stall("backward", 6, 3.5, 0.22, every_steps=2.0, mean_seconds=0.59)
    run = run_of(stalls=(cluster,))
    assert all(found.id != "trend.periodic_stalls" for found in findings(run))


def test_an_average_of_the_weights_is_not_told_to_be_kept_only_when_better() -> None:
    code = "self.shadow[n] = self.decay * self.shadow[n] + (1 - self.decay) * p"
    found = first(looped(code, function="Twin.update", work={"job": "copy", "carried": True}))
    assert found.id == "compute.state_copies" and not found.remedy.change
    assert "_foreach_lerp_" in found.remedy.summary and "less often" in found.remedy.avoid


def test_a_default_optimizer_is_a_hint_and_one_that_was_made_slow_a_warning() -> None:
    phases = {"forward": 0.002, "backward": 0.003, "optimizer": 0.005}
    default = run_of(phases, config={"optimizer": {"class": "Adam", "kind": "Adam", "fused": None}})
    assert (first(default).id, first(default).severity) == ("compute.optimizer_unfused", "hint")
    explicit = run_of(
        phases, config={"optimizer": {"class": "Adam", "kind": "Adam", "fused": None, "foreach": False}}
    )
    assert (first(explicit).id, first(explicit).severity) == ("compute.optimizer_unfused", "warning")


def grown(sizes: list[int], steps: int = 50) -> list[str]:
    """Ids of a run whose process had these sizes in MiB, one per second, this many steps apart."""
    engine = Engine()
    found: tuple[Finding, ...] = ()
    for at, size in enumerate(sizes):
        scalars = {"proc.rss_bytes": float(size << 20), "proc.tree_rss_bytes": float(900 << 20)}
        run = run_of(rank={"scalars": scalars, "steps": steps * (at + 1)}, steps=steps * (at + 1))
        found = engine.evaluate(snapshot_of(run)).findings
    return [finding.id for finding in found]


def test_a_leak_is_steady_growth_of_the_process_itself() -> None:
    assert "memory.leak" in grown([300, 340, 380, 420, 460, 500, 540, 580])
    assert "memory.leak" not in grown([300, 300, 300, 300, 300, 300, 320, 400])
    assert "memory.leak" in grown([300, 450, 600, 750, 900]), "a short run that grows fast"
    assert "memory.leak" not in grown([300, 310, 320, 330, 340])
    warming = [600, 615, 630, 645, 660, 675, 690, 705]
    assert "memory.leak" in grown(warming) and "memory.leak" not in grown(warming, steps=12)


def test_a_leak_names_the_line_that_keeps() -> None:
    engine = Engine()
    found: tuple[Finding, ...] = ()
    for at in range(8):
        rank = {"scalars": {"proc.rss_bytes": float((300 + 40 * at) << 20)}, "steps": 50 * (at + 1)}
        keeps = [{"file": "train.py", "line": 31, "code": "history.append(loss)"}]
        found = engine.evaluate(
            snapshot_of(run_of(rank=rank, steps=50 * (at + 1), config={"keeps": keeps}))
        ).findings
    leak = next(finding for finding in found if finding.id == "memory.leak")
    assert "train.py:31" in leak.remedy.summary and "`history.append(loss)`" in leak.remedy.summary


def test_a_loop_over_norms_beside_clipping_is_told_that_clipping_returns_the_norm() -> None:
    spots = [hot("grad_norm", "clip(model.parameters(), 1.0)", line=12, job="clip")]
    work = [piece("other", "total = measure(model)", line=9, job="grad_norm")]
    config = {"hotspots": spots, "work": work}
    found = first(run_of(LOOP | {"other": 0.004, "grad_norm": 0.001}, config=config))
    assert found.id == "compute.grad_norm_every_step" and "train.py:9" in found.title
    assert "returns it" in found.remedy.summary and "part of the update" in found.remedy.avoid


def test_clipping_itself_is_never_told_to_be_done_less_often() -> None:
    spots = [hot("grad_norm", "clip(model.parameters(), 1.0)", line=12, job="clip")]
    found = first(run_of(LOOP | {"grad_norm": 0.008}, config={"hotspots": spots}))
    assert found.id == "compute.grad_norm_every_step" and "foreach=True" in found.remedy.summary
    assert not found.remedy.change and found.remedy.effect == "rounding"
    assert "every" not in found.remedy.summary


def test_stalls_with_the_epochs_name_what_runs_once_an_epoch() -> None:
    again = Stall("between", 12, 12.0, 0.3, every_steps=281.0, mean_seconds=1.0)
    lines = [called("", 14, "train = DataLoader(load_split(path))"), called("", 20, "tell(epoch)")]
    config = loader_config(0) | {"per_epoch": lines}
    rank = {"steps": 3400}
    found = first(run_of(LOOP | {"between": 0.004}, stalls=(again,), config=config, rank=rank, steps=3400))
    assert found.id == "trend.periodic_stalls"
    assert "train.py:14" in found.title and "load_split(path)" in found.remedy.summary
    assert found.severity == "hint" and found.speedup is None, "the training may need what they do"


def test_a_run_ended_before_its_lines_were_looked_up_is_not_called_healthy() -> None:
    """GIVEN a run that spends its time between the steps and was ended by a signal THEN neither the batch nor
    nothing is to blame: it is not known. A run whose lines are known, or may still be, is judged as ever."""
    phases = {"forward": 0.00002, "backward": 0.00003, "optimizer": 0.00001, "between": 0.001}
    ended = run_of(phases, batch_size=4, state="ended", ended=1_000_000.0, interrupted=True, live=False)
    found = first(ended)
    assert (found.id, found.severity) == ("healthy.ok", "hint"), found
    assert "not known" in found.title and "94 %" in found.title and found.speedup is None
    known = msgspec.structs.replace(ended, config=ended.config | {"sampled_steps": 40})
    assert first(known).id == "compute.small_batch"


def test_an_optimizer_that_calls_the_model_is_not_slow_itself() -> None:
    phases = {"forward": 0.0002, "backward": 0.003, "optimizer": 0.04}
    lbfgs = run_of(phases, config={"optimizer": {"class": "LBFGS", "kind": "LBFGS", "fused": None}})
    assert first(lbfgs).id == "healthy.ok"
    inside = hot("optimizer", "return self.head(x)", function="Net.forward", kind="module")
    closure = {"optimizer": {"class": "Newton", "fused": None}, "hotspots": [inside]}
    assert first(run_of(phases, config=closure)).id == "healthy.ok"


def test_lines_of_a_forward_that_use_no_input_are_one_constant() -> None:
    spots = [
        hot(
            "forward",
            "pe[:, 0::2] = torch.sin(pos * div)",
            0.3,
            function="Net.forward",
            fixed=True,
            kind="module",
        ),
        hot(
            "forward",
            "pe = torch.zeros(4096, 64)",
            0.1,
            function="Net.forward",
            fixed=True,
            line=6,
            kind="module",
        ),
    ]
    found = first(run_of(LOOP | {"forward": 0.012}, config={"hotspots": spots}))
    assert found.id == "compute.constant_recomputed" and "1 more line" in found.title


def test_a_permutation_of_everything_is_told_to_draw_instead() -> None:
    work = {"job": "", "needed": "yes", "random": True}
    found = first(looped("idx = draw(k)", "other", function="Buffer.sample", job="shuffle", work=work))
    assert found.id == "compute.user_code" and "torch.randint" in found.remedy.summary
    assert not found.remedy.change and found.remedy.effect == "in_expectation"


def test_a_number_stays_with_its_unit_at_the_end_of_a_line() -> None:
    snapshot = snapshot_of(msgspec.structs.replace(starved(0), state="ended"))
    snapshot = Engine().evaluate(snapshot)
    report = make_report(snapshot, "r", 0)
    whole = " ".join(" ".join(line.split()) for line in render(report, 4000))
    for width in range(50, 100):
        lines = list(render(report, width))
        broken = [a for a, b in pairwise(lines) if re.search(r"\d$", a) and re.match(r" *(%|ms|µs)", b)]
        assert not broken and "ms" in whole


def test_hashing_in_a_loop_is_hashing_and_no_loop_to_vectorise() -> None:
    work = {"job": "hash", "api": "hashlib.sha256"}
    found = first(looped("digest.update(raw(t))", function="fingerprint", calls=24, job="hash", work=work))
    assert found.id == "compute.user_code" and "hash" in found.remedy.summary


def test_an_own_optimizer_gets_no_advice_that_torchs_class_of_that_name_would() -> None:
    """GIVEN somebody's own class called Adam WHEN it is slow THEN nobody is told to pass it `fused=True`."""
    phases = {"forward": 0.002, "backward": 0.003, "optimizer": 0.01}
    both = [
        first(run_of(phases, config={"optimizer": {"class": "Adam", "kind": kind, "fused": None}}))
        for kind in ("Adam", "Optimizer")
    ]
    assert [one.id for one in both] == ["compute.optimizer_unfused"] * 2
    assert ["Pass fused=True" in one.remedy.summary for one in both] == [True, False]


def test_gradients_of_one_sample_after_the_other_are_a_loop_if_the_model_is_small() -> None:
    def found(parameters: int, **where: Any) -> list[Finding]:
        loop = looped("g = one(p, x)", "forward", 0.018, calls=48, derives=True, **where)
        model = {"modules": 5, "layers": ["Linear"], "parameters": parameters}
        run = msgspec.structs.replace(loop, config=loop.config | {"model": model}, batch_size=48)
        return [one for one in findings(run) if one.id == "compute.python_loop"]

    at_once = {"batchable": ["train.py", 6]}
    [small] = found(30_000, **at_once)
    assert "vmap" in small.remedy.summary and small.speedup is not None and small.speedup.likely > 2.0
    assert not found(30_000) and not found(3_000_000, **at_once)


def test_a_loop_of_gru_cells_is_no_alarm_on_a_cpu_where_nothing_is_faster() -> None:
    def found(cell: str) -> Finding:
        loop = looped("h = self.cell(x, h)", "forward", 0.012, calls=80, kind="module")
        layers = msgspec.structs.replace(
            loop, config=loop.config | {"model": {"modules": 5, "layers": [cell]}}
        )
        return next(one for one in findings(layers) if one.id == "compute.python_loop")

    assert (found("LSTMCell").severity, found("GRUCell").severity) == ("warning", "hint")


def test_views_drawn_in_a_few_calls_are_as_they_should_be_where_no_core_is_free() -> None:
    """GIVEN augmentation of a whole batch in the loop THEN only a free core could do it ahead of time."""

    def found(threads: int, **line: Any) -> bool:
        views = looped("a, b = two_views(x)", work={"random": True, "needed": "yes"}, once=True, **line)
        run = msgspec.structs.replace(
            views, config=views.config | {"threads": {"torch": threads}, "cpu_count": 2}
        )
        return any(one.id == "compute.user_code" for one in findings(run))

    assert [found(2, calls=8), found(1, calls=8), found(2, calls=400)] == [False, True, True]


def test_samples_made_between_moves_are_the_loops_own_code_whatever_the_moves_are_called() -> None:
    """GIVEN moves that were recorded as evaluation and are counted as playing WHEN most of that time makes
    the samples the agent learns from THEN it is named."""
    phases = {"forward": 0.0005, "backward": 0.0004, "rollout": 0.001}
    made = piece("validate", "batch = memory.sample(64)", share=0.7, needed="yes", feeds=True, pure=True)
    line = hot("validate", "torch.tensor(batch.state)", 0.5, piece=["train.py", 7])
    run = run_of(phases, config={"work": [made], "hotspots": [line]})
    assert "compute.user_code" in [one.id for one in findings(run)]
