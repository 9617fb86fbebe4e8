"""One run out of what several machines told: who is slow, lost, moved or missing."""

from __future__ import annotations

from monitor.fleet.api import Sample
from monitor.fleet.fleet import Fleet
from monitor.fleet.questions import Answers, gpu_hours, one_run
from monitor.model.history import RunRecord
from tests.unit.fleet.answers import NOW, MadeUp

EVEN = {"data": 0.01, "forward": 0.02, "backward": 0.05}
LATE = {"data": 0.04, "forward": 0.02, "backward": 0.02}
TWO = {"a:10835": (0, 1), "b:10835": (2, 3)}


def records(answers: Answers) -> list[RunRecord]:
    return Fleet("http://prometheus:9090", now=NOW)._records(answers)


def record(made: MadeUp) -> RunRecord:
    (one,) = records(made.answers())
    return one


def ids(one: RunRecord) -> list[str]:
    return [finding.id for finding in one.findings]


def test_machines_become_one_run() -> None:
    run = record(MadeUp(TWO)).run
    assert (run.id, run.name, run.state, run.user) == ("llm-1", "llm", "running", "ada")
    assert [(rank.rank, rank.hostname) for rank in run.ranks] == [(0, "a"), (1, "a"), (2, "b"), (3, "b")]
    assert [(node.name, node.ranks, node.hostname) for node in run.nodes] == [
        ("a", (0, 1), "host-a:10835"),
        ("b", (2, 3), "host-b:10835"),
    ]
    assert run.steps == 100 and not run.missing_ranks


def test_targets_that_differ_only_by_port_keep_it() -> None:
    run = record(MadeUp({"x:1": (0,), "x:2": (1,)})).run
    assert [node.name for node in run.nodes] == ["x:1", "x:2"]


def test_the_slow_machine_is_named_with_its_phase() -> None:
    """GIVEN both ranks of b load slowly and the others wait in backward THEN b is slow, not rank 2."""
    one = record(MadeUp(TWO, {0: EVEN, 1: EVEN, 2: LATE, 3: LATE}))
    assert ids(one)[0] == "distributed.slow_node" and "distributed.straggler" not in ids(one)
    finding = one.findings[0]
    assert finding.evidence["node"] == "b" and finding.evidence["phase"] == "data"
    a, b = one.run.nodes
    assert b.skew_ratio is not None and abs(b.skew_ratio - 0.08 / 0.05) < 1e-6
    assert a.wait_share is not None and abs(a.wait_share - 0.03 / 0.08) < 1e-6 and b.wait_share == 0


def test_one_late_rank_is_a_straggler_and_not_a_slow_machine() -> None:
    one = record(MadeUp(TWO, {0: EVEN, 1: EVEN, 2: EVEN, 3: LATE}))
    assert "distributed.straggler" in ids(one) and "distributed.slow_node" not in ids(one)
    assert one.findings[0].rank == 3 and "(b)" in one.findings[0].remedy.summary


def test_even_machines_are_not_accused() -> None:
    assert not {"distributed.slow_node", "distributed.straggler", "distributed.lost_nodes"} & set(
        ids(record(MadeUp(TWO, dict.fromkeys(range(4), EVEN))))
    )


def test_host_times_on_a_gpu_accuse_nobody_of_slow_kernels() -> None:
    """On a GPU, host time in forward is launching and waiting: without device times there is no verdict."""
    slow = {"data": 0.01, "forward": 0.06, "backward": 0.01}
    assert "distributed.slow_node" not in ids(
        record(MadeUp(TWO, {0: EVEN, 1: EVEN, 2: slow, 3: slow}, device="cuda:0"))
    )


def test_device_times_tell_which_machine_s_gpus_are_slow() -> None:
    """Who comes late to the exchange waits least in it."""
    made = MadeUp(TWO, dict.fromkeys(range(4), EVEN), device="cuda:0")
    extra: list[Sample] = []
    for node, ranks in TWO.items():
        late = node.startswith("b")
        for rank in map(str, ranks):
            name = "gpumon_rank_device_phase_seconds"
            extra += [
                made.sample(name, node, 0.06 if late else 0.03, rank=rank, phase="forward"),
                made.sample(name, node, 0.02 if late else 0.05, rank=rank, phase="backward"),
                made.sample("gpumon_rank_exchange_seconds", node, 0.001 if late else 0.031, rank=rank),
            ]
    made.more_now = extra
    one = record(made)
    assert ids(one)[0] == "distributed.slow_node"
    assert one.findings[0].evidence["node"] == "b" and one.findings[0].evidence["phase"] == "forward"


def test_a_machine_that_reports_no_more_is_lost_with_its_ranks() -> None:
    one = record(MadeUp(TWO, gone=("b:10835",), down=("b:10835",)))
    a, b = one.run.nodes
    assert (a.state, b.state, b.unreachable, b.ranks) == ("running", "lost", True, (2, 3))
    assert one.run.state == "running" and one.run.missing_ranks == (2, 3)
    assert one.findings[0].id == "distributed.lost_nodes" and one.findings[0].severity == "critical"
    assert "Lost node: b (ranks 2–3), no step from there for 2 min" in one.findings[0].title


def test_another_exporter_that_is_down_says_nothing_about_the_machine() -> None:
    answers = MadeUp(TWO, gone=("b:10835",)).answers()
    answers.down.append(Sample({"job": "node-exporter", "instance": "b:10835"}, 0.0))
    (one,) = records(answers)
    assert one.run.nodes[1].state == "lost" and not one.run.nodes[1].unreachable


def test_ranks_that_were_never_seen_are_missing() -> None:
    one = record(MadeUp({"a:1": (0, 1), "b:1": (4, 5)}, world=8))
    assert one.run.missing_ranks == (2, 3, 6, 7)
    found = next(finding for finding in one.findings if finding.id == "distributed.lost_nodes")
    assert found.severity == "warning" and "ranks 2–3 and 6–7 of 8" in found.title


def test_a_run_that_is_over_lacks_nobody() -> None:
    one = record(MadeUp(TWO, gone=("b:10835",), states={"a:10835": "ended", "b:10835": "ended"}))
    assert one.run.state == "ended" and not one.run.missing_ranks
    assert "distributed.lost_nodes" not in ids(one)
    assert one.run.ended == NOW - 1, "no end was told: its last step"


def test_a_run_all_of_whose_machines_are_gone_is_not_seen_to_move() -> None:
    one = record(MadeUp(TWO, gone=tuple(TWO)))
    assert one.run.state == "stalled" and one.run.missing_ranks == (0, 1, 2, 3)
    assert "Lost nodes: a, b" in one.findings[0].title


def test_a_rank_counts_where_it_made_its_newest_step() -> None:
    """An elastic job restarted rank 1 on another machine."""
    run = record(MadeUp({"a:1": (0, 1), "b:1": (1,)}, gone=("a:1",))).run
    assert [(rank.rank, rank.hostname) for rank in run.ranks] == [(0, "a"), (1, "b")]


def test_long_steps_are_judged_by_the_whole_run() -> None:
    """Five steps in the last minutes are too few; the counters of the whole run are not."""
    one = record(MadeUp(TWO, {0: EVEN, 1: EVEN, 2: LATE, 3: LATE}, recent=0.02))
    assert ids(one)[0] == "distributed.slow_node"


def test_waiting_adds_up_over_the_run() -> None:
    waste = record(MadeUp(TWO, {0: EVEN, 1: EVEN, 2: LATE, 3: LATE}, steps=3600)).run.waste
    assert waste is not None and waste.waiting_rank_hours is not None
    assert abs(waste.waiting_rank_hours - 2 * 0.03) < 1e-6, "two ranks waited 30 ms in each of 3,600 steps"


def test_findings_of_the_daemons_are_one_a_rule() -> None:
    made = MadeUp(TWO)
    a, b = TWO
    said: tuple[tuple[str, str, str], ...] = (
        (a, "input.no_workers", "hint"),
        (b, "input.no_workers", "warning"),
    )
    said += ((a, "distributed.straggler", "warning"), (a, "healthy.ok", "healthy"))
    made.more_now = [
        made.sample("gpumon_finding_active", node, 1.0, rule=rule, severity=severity)
        for node, rule, severity in said
    ]
    for node, scale in ((a, 1.0), (b, 2.0)):
        for name, value in (("low", 1.1 * scale), ("likely", 1.2 * scale), ("high", 1.3 * scale)):
            gain, labels = "gpumon_finding_predicted_speedup_ratio", {"rule": "input.no_workers"}
            made.more_now.append(made.sample(gain, node, value, estimate=name, **labels))
    one = record(made)
    assert ids(one) == ["input.no_workers"], "what one machine sees of the ranks is not the whole"
    finding = one.findings[0]
    assert finding.severity == "warning" and finding.title.endswith("found on a, b")
    assert finding.speedup is not None and finding.speedup.likely == 1.2, "the most cautious"


def test_clusters_are_kept_apart() -> None:
    first, second = MadeUp(TWO, labels={"cluster": "x"}), MadeUp(TWO, labels={"cluster": "y"})
    both = first.answers()
    both.known.extend(second.answers().known)
    both.now.extend(second.answers().now)
    assert len(records(both)) == 2


def test_a_run_s_name_cannot_end_the_query() -> None:
    assert one_run('x"} or up{a="\\') == 'run="x\\"} or up{a=\\"\\\\"'


def test_gpu_hours_are_of_the_range_in_at_most_five_hundred_points() -> None:
    held, idle = gpu_hours('run="x"', 36000)
    assert "[36000s:72s]" in held and held.endswith("* 72 / 3600") and "[36000s:72s]" in idle
