"""The cause itself is named first, at its line, with a remedy that fits; and not a neighbour of it."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import msgspec

from monitor.advice.engine import Engine
from monitor.snapshot import Finding, Run, Stall
from monitor.summary import make_report
from monitor.summary_text import render
from tests.unit.advice.build import hot, loader, loader_config, run_of, snapshot_of
from tests.unit.advice.shapes import LOADED, STARVED, looped, starved

LOOP = {"data": 0.0004, "forward": 0.003, "backward": 0.005, "optimizer": 0.0006}


def called(function: str, line: int, code: str) -> dict[str, Any]:
    return {"function": function, "file": "train.py", "line": line, "code": code}


def findings(run: Run) -> tuple[Finding, ...]:
    return Engine().evaluate(snapshot_of(msgspec.structs.replace(run, state="ended")))


def first(run: Run) -> Finding:
    return findings(run)[0]


def test_a_constant_is_named_with_its_function_and_where_it_is_asked_for() -> None:
    spot = hot("forward", "return D @ A @ D", kind="module", function="normalise", constant="normalise")
    spot["callers"] = [called("GCN.forward", 15, "An = normalise(A)")]
    found = first(run_of(LOOP | {"forward": 0.012}, config={"hotspots": [spot]}))
    assert found.id == "compute.constant_recomputed"
    assert "`normalise` returns the same" in found.title and "train.py:15" in found.remedy.summary
    assert "An = normalise(A)" in found.remedy.change


def test_a_mask_built_in_the_model_is_a_constant_too() -> None:
    mask = looped("mask = torch.triu(torch.ones(t, t), 1)", "forward", 0.012, kind="module", calls=2)
    assert first(mask).id == "compute.constant_recomputed"


def test_labels_made_on_the_line_of_a_pass_are_no_constant() -> None:
    line = "loss = bce(D(real), torch.ones(64, 1))"
    run = looped(line, "forward", 0.012, kind="module", inside="linear", calls=4)
    assert all(found.id != "compute.constant_recomputed" for found in findings(run))


def test_lines_of_a_comprehension_belong_to_the_function_it_stands_in() -> None:
    spots = [
        hot(
            "between",
            "log(**{k: v.item() for k, v in losses.items()})",
            0.6,
            function="Trainer.step.<dictcomp>",
        ),
        hot("between", "log(**{k: p.grad.norm().item()})", 0.1, function="Trainer.step.<dictcomp>", line=9),
    ]
    scalars = {"sync.items_per_step": 70.0, "sync.seconds_per_step": 0.0001}
    run = run_of(LOOP | {"between": 0.004}, config={"hotspots": spots}, rank={"scalars": scalars})
    found = first(run)
    assert found.id == "compute.sync_every_step"
    assert found.evidence["sync_seconds_per_step"] > 0.002  # the lines, not only the reads on them


def test_what_a_job_calls_belongs_to_the_job() -> None:
    spot = hot(
        "between",
        "counts = np.bincount(index)",
        function="bins",
        callers=[called("log_weights", 30, "bins(w)")],
    )
    found = first(run_of(LOOP | {"between": 0.006}, config={"hotspots": [spot]}))
    assert found.id == "compute.logging_too_often"


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
    assert found.evidence["hot_share_of_phase"] > 0.65


def test_random_samples_with_workers_ask_for_batches_not_for_a_cache() -> None:
    drawn = hot("fetch", "img = img * scale", function="Rows.jitter", random=True)
    found = first(starved(2, [drawn]))
    assert found.id == "input.slow_getitem"
    assert "whole batch" in found.remedy.summary and "Rows.jitter" in found.title


def test_what_is_not_random_in_a_sample_is_still_to_be_cached() -> None:
    spots = [
        hot("fetch", "img = decode(blob)", 0.85, function="Rows.decode"),
        hot("fetch", "img = img * scale", 0.1, function="Rows.jitter", random=True, line=9),
    ]
    assert "once for all" in first(starved(2, spots)).remedy.summary


def test_a_scan_in_getitem_is_the_data_sets_own_code() -> None:
    scan = hot("data", "for row in csv.reader(file):", function="Rows.__getitem__")
    assert "train.py:7" in first(starved(0, [scan])).title


def test_the_sampler_is_named_at_its_line() -> None:
    scan = hot("data", "pool = [i for i in labels if i == c]", function="Balanced.__iter__")
    times = LOADED | {"sampler_seconds": 0.019, "fetch_seconds": 0.001}
    found = first(starved(0, [scan], times, batch_sampler="Balanced"))
    assert found.id == "input.slow_sampler" and "train.py:7" in found.title


def test_the_collate_function_is_named_at_its_line_and_torchs_own_otherwise() -> None:
    times = LOADED | {"collate_seconds": 0.018, "fetch_seconds": 0.001}
    split = hot(
        "data", "words = text.split()", function="tokenize", callers=[called("collate", 30, "tokenize(t)")]
    )
    named = first(starved(0, [split], times))
    assert named.id == "input.slow_collate" and "train.py:7" in named.title
    torchs = first(starved(0, [], times, collate="default_collate"))
    assert "one indexing" in torchs.remedy.summary and "default_collate" not in torchs.remedy.change


def test_many_idle_workers_are_too_many_even_when_nothing_waits() -> None:
    times = {"fetch_seconds": 0.004, "collate_seconds": 0.0005, "worker_busy_ratio": 0.02}
    crowd = run_of(config=loader_config(16), rank={"loader": loader(**times)}, batch_size=8)
    found = first(crowd)
    assert found.id == "input.too_many_workers" and found.evidence["suggested_workers"] == 1
    few = run_of(config=loader_config(2), rank={"loader": loader(**times)})
    assert first(few).id == "healthy.ok"


def test_a_cluster_of_stalls_is_no_period() -> None:
    cluster = Stall("backward", 6, 3.5, 0.22, every_steps=2.0, mean_seconds=0.59)
    run = run_of(stalls=(cluster,))
    assert all(found.id != "trend.periodic_stalls" for found in findings(run))


def test_an_average_of_the_weights_is_not_told_to_be_kept_only_when_better() -> None:
    code = "self.shadow[n] = self.decay * self.shadow[n] + (1 - self.decay) * p"
    found = first(looped(code, function="EMA.update"))
    assert found.id == "compute.state_copies"
    assert "_foreach_lerp_" in found.remedy.change and "improved" not in found.remedy.change


def test_a_default_optimizer_is_a_hint_and_one_that_was_made_slow_a_warning() -> None:
    phases = {"forward": 0.002, "backward": 0.003, "optimizer": 0.005}
    default = run_of(phases, config={"optimizer": {"class": "Adam", "fused": None}})
    assert first(default).id == "healthy.ok"
    explicit = run_of(phases, config={"optimizer": {"class": "Adam", "fused": None, "foreach": False}})
    assert first(explicit).id == "compute.optimizer_unfused"


def test_the_loader_without_a_hot_line_still_has_its_cause() -> None:
    run = run_of(STARVED, config=loader_config(0), rank={"loader": loader(**LOADED)})
    assert first(run).id.startswith("input.")


def grown(sizes: list[int]) -> list[str]:
    """Ids of a run whose process has had these sizes in MiB, one a second."""
    engine, found = Engine(), ()
    for at, size in enumerate(sizes):
        scalars = {"proc.rss_bytes": float(size << 20), "proc.tree_rss_bytes": float(900 << 20)}
        run = run_of(rank={"scalars": scalars, "steps": 50 * (at + 1)}, steps=50 * (at + 1))
        found = engine.evaluate(snapshot_of(run))
    return [finding.id for finding in found]


def test_a_leak_is_steady_growth_of_the_process_itself() -> None:
    assert "memory.leak" in grown([300, 340, 380, 420, 460, 500, 540, 580])
    assert "memory.leak" not in grown([300, 300, 300, 300, 300, 300, 320, 400])
    assert "memory.leak" in grown([300, 450, 600, 750, 900]), "a short run that grows fast"
    assert "memory.leak" not in grown([300, 310, 320, 330, 340])


def test_a_leak_names_the_line_that_keeps() -> None:
    engine, found = Engine(), ()
    for at in range(8):
        rank = {"scalars": {"proc.rss_bytes": float((300 + 40 * at) << 20)}, "steps": 50 * (at + 1)}
        keeps = [{"file": "train.py", "line": 31, "code": "history.append(loss)"}]
        found = engine.evaluate(snapshot_of(run_of(rank=rank, steps=50 * (at + 1), config={"keeps": keeps})))
    leak = next(finding for finding in found if finding.id == "memory.leak")
    assert "train.py:31" in leak.remedy.summary and "- history.append(loss)" in leak.remedy.change


def test_a_loop_over_norms_beside_clipping_is_told_that_clipping_returns_the_norm() -> None:
    spots = [
        hot("other", "for p in model.parameters(): total += p.grad.norm().item() ** 2", line=9),
        hot("grad_norm", "clip_grad_norm_(model.parameters(), 1.0)", line=12),
    ]
    found = first(run_of(LOOP | {"other": 0.004, "grad_norm": 0.001}, config={"hotspots": spots}))
    assert found.id == "compute.grad_norm_every_step" and "train.py:9" in found.title
    assert "returns it" in found.remedy.summary


def test_stalls_with_the_epochs_name_what_runs_once_an_epoch() -> None:
    again = Stall("between", 12, 12.0, 0.3, every_steps=281.0, mean_seconds=1.0)
    lines = [called("", 20, "print(epoch)"), called("", 14, "train = DataLoader(load_split(path))")]
    config = loader_config(0) | {"per_epoch": lines}
    rank = {"steps": 3400}
    found = first(run_of(LOOP | {"between": 0.004}, stalls=(again,), config=config, rank=rank, steps=3400))
    assert found.id == "trend.periodic_stalls"
    assert "train.py:14" in found.title and "load_split(path)" in found.remedy.summary


def test_an_optimizer_that_calls_the_model_is_not_slow_itself() -> None:
    phases = {"forward": 0.0002, "backward": 0.003, "optimizer": 0.04}
    lbfgs = run_of(phases, config={"optimizer": {"class": "LBFGS", "fused": None}})
    assert first(lbfgs).id == "healthy.ok"
    inside = hot("optimizer", "return self.head(x)", function="Net.forward", kind="module")
    closure = {"optimizer": {"class": "Newton", "fused": None}, "hotspots": [inside]}
    assert first(run_of(phases, config=closure)).id == "healthy.ok"


def test_a_pass_that_only_judges_the_model_is_validation_also_without_a_loader() -> None:
    judge = looped(
        "acc = (net(x_val).argmax(1) == y_val).float().mean()", "other", kind="module", no_grad=True
    )
    assert first(judge).id == "compute.validation_too_often"
    teach = looped("target = teacher(x)", "other", kind="module", no_grad=True)
    assert first(teach).id == "healthy.ok"


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
    found = first(looped("idx = torch.randperm(len(self.s))[:k]", "other", function="Buffer.sample"))
    assert found.id == "compute.user_code" and "torch.randint" in found.remedy.summary


def test_the_change_is_made_where_the_loop_asks_but_not_on_the_line_of_a_pass() -> None:
    asks = called("train", 30, "scores(out, y)")
    packed = called("train", 30, "loss = model(x); loss.backward(); scores(out, y)")
    backward = hot("backward", "loss.backward()", function="train", line=29)
    for caller, shown in ((asks, "- scores(out, y)"), (packed, "- f1 = f1_score(y, guess)")):
        spot = hot("between", "f1 = f1_score(y, guess)", function="scores", callers=[caller])
        found = first(run_of(LOOP | {"between": 0.006}, config={"hotspots": [backward, spot]}))
        assert found.id == "compute.metrics_every_step" and shown in found.remedy.change


def test_a_number_stays_with_its_unit_at_the_end_of_a_line() -> None:
    snapshot = snapshot_of(msgspec.structs.replace(starved(0), state="ended"))
    snapshot = msgspec.structs.replace(snapshot, findings=Engine().evaluate(snapshot))
    report = make_report(snapshot, "r", 0)
    whole = " ".join(" ".join(line.split()) for line in render(report, 4000))
    for width in range(50, 100):
        lines = list(render(report, width))
        broken = [a for a, b in pairwise(lines) if re.search(r"\d$", a) and re.match(r" *(%|ms|µs)", b)]
        assert not broken and "ms" in whole


def test_a_line_that_uses_its_input_beside_a_table_is_no_constant() -> None:
    for code in ("mask = torch.triu(scores, 1)", "far = torch.arange(n) * x.sum(1)", "d = torch.cdist(a, b)"):
        run = looped(code, "forward", 0.012, kind="module", calls=2)
        assert all(found.id != "compute.constant_recomputed" for found in findings(run)), code


def test_the_change_of_a_constant_keeps_the_rest_of_the_line() -> None:
    spot = hot("forward", "mask[row, : row + 1] = 0.0", function="causal", constant="causal", kind="module")
    spot["callers"] = [called("Net.forward", 21, "scores = scores + causal(x.size(1))")]
    change = first(run_of(LOOP | {"forward": 0.012}, config={"hotspots": [spot]})).remedy.change
    assert "+ kept = causal(x.size(1))" in change and "+ scores = scores + kept" in change


def test_workers_that_queue_for_the_cores_do_not_count_as_waiting() -> None:
    times = {"fetch_seconds": 0.0008, "collate_seconds": 0.0001}
    crowd = starved(16, [hot("fetch", "w = (w - w.mean(0)) / w.std(0)", kind="io")], times)
    assert first(crowd).id == "input.too_many_workers"
    store = starved(4, [hot("fetch", "blob = urlopen(url).read()", kind="io")], {"fetch_seconds": 0.08})
    assert first(store).id == "input.too_few_workers"


def test_hashing_in_a_loop_is_hashing_and_no_loop_to_vectorise() -> None:
    found = first(looped("digest.update(t.numpy().tobytes())", "between", function="fingerprint", calls=24))
    assert found.id == "compute.user_code" and "hash" in found.remedy.summary


def test_a_gradient_penalty_is_part_of_the_loss_and_no_record_of_norms() -> None:
    spots = [
        hot(
            "other",
            "(grad,) = autograd.grad(out, x, create_graph=True)",
            0.3,
            function="penalty",
            kind="module",
        ),
        hot("other", "return ((grad.norm(2, dim=1) - 1) ** 2).mean()", 0.1, function="penalty", line=9),
        hot("other", "loss = critic(fake).mean() + penalty(x)", 0.5, kind="module", line=20),
    ]
    assert first(run_of(LOOP | {"other": 0.006}, config={"hotspots": spots})).id == "healthy.ok"


def test_jobs_that_only_mention_the_loss_are_still_jobs() -> None:
    for code, id in (
        ("print(step, loss.item())", "compute.logging_too_often"),
        ("best = copy.deepcopy(model) if loss < low else best", "compute.state_copies"),
    ):
        assert first(looped(code, "other")).id == id


def test_words_of_the_model_and_of_its_loss_are_no_jobs_beside_it() -> None:
    """log() is a logarithm, dice a loss, topk a router, evaluate() a pass of an agent."""
    lines = [
        ("kl = (p * (p.log() - q.log())).sum(1).mean()", {"function": "divergence"}),
        ("return 1 - 2 * (p * t).sum() / (p + t).sum()", {"function": "dice_loss"}),
        ("weight, expert = gate.topk(2)", {"function": "Router.forward", "kind": "module"}),
        ("return self.base.log_prob(z) + det", {"function": "Flow.log_prob", "kind": "module"}),
        ("return dist.log_prob(actions), value", {"function": "Agent.evaluate", "kind": "module"}),
        ("loss = score(out, y).topk(5).values.mean()", {"function": "train"}),
    ]
    for code, told in lines:
        for phase in ("forward", "other"):
            found = [
                one for one in findings(looped(code, phase, share=0.3, **told)) if one.severity == "warning"
            ]
            assert not found, (code, phase, found[0].id)


def test_a_model_written_out_in_operations_is_the_model() -> None:
    assert first(looped("h = torch.tanh(x @ w1 + b1)", "other", 0.02)).id == "healthy.ok"
    assert first(looped("near = [n for n in nodes if far(n)]", "other", 0.02)).id == "compute.user_code"
