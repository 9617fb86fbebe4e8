"""One run over four machines: daemons, torchrun over gloo, Prometheus and VictoriaMetrics, all real."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from monitor.fleet.fleet import Fleet
from monitor.model.errors import UserError
from monitor.model.history import RunRecord
from monitor.model.run import Run
from tests.conftest import PATIENCE, require_program, wait_for
from tests.integration.daemon.process import GPUMON, Daemon, clean_environment
from tests.integration.daemon.test_page import browser
from tests.integration.fleet.site import NODES, RANKS, Machine, machines, training
from tests.integration.grafana.stage import central, prometheus

pytestmark = pytest.mark.slow
SLOW = 2
"""Which of the four machines loads its data slowly."""


class Site(NamedTuple):
    prometheus: str
    central: str | None
    nodes: list[Machine]
    daemons: list[Daemon]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    program, folder = require_program("prometheus"), tmp_path_factory.mktemp("fleet")
    with ExitStack() as stack:
        nodes = stack.enter_context(machines(folder))
        daemons = [stack.enter_context(node.daemon()) for node in nodes]
        port = stack.enter_context(central(folder)) if shutil.which("victoria-metrics") else None
        write = f"remote_write: [{{url: 'http://127.0.0.1:{port}/api/v1/write'}}]\n" if port else ""
        targets = {node.name: f"{node.host}:{one.port}" for node, one in zip(nodes, daemons, strict=True)}
        asked = stack.enter_context(prometheus(program, folder, targets, config=write))
        stack.enter_context(training(nodes, nodes[SLOW]))
        wait_for(lambda: _verdict(asked.url) == nodes[SLOW].name, every=1.0)
        yield Site(asked.url, f"http://127.0.0.1:{port}" if port else None, nodes, daemons)


def _verdict(url: str) -> str | None:
    """The machine that is named, once enough of the run was scraped: on a crowded machine its first seconds
    may tell of another."""
    try:
        found = Fleet(url).record("ddp")
    except UserError:
        return None
    if found.run.missing_ranks or found.run.waste is None or not found.run.waste.held_gpu_hours:
        return None
    return next((one.evidence["node"] for one in found.findings if one.id == "distributed.slow_node"), None)


def _ids(record: RunRecord) -> list[str]:
    return [finding.id for finding in record.findings]


def gpumon(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*GPUMON, *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=clean_environment(),
        check=False,
    )


def answer(*words: str) -> Any:
    done = gpumon(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_run_is_one_and_its_slow_machine_is_named(site: Site) -> None:
    """GIVEN 4 x 2 ranks, those of one slow to load THEN it is one run, and that machine is named."""
    record = Fleet(site.prometheus).record("ddp")
    run, slow = record.run, site.nodes[SLOW]
    assert run.state == "running" and run.world_size == NODES * RANKS and not run.missing_ranks
    assert [rank.rank for rank in run.ranks] == list(range(NODES * RANKS))
    assert {node.name: node.ranks for node in run.nodes} == {
        node.name: (2 * at, 2 * at + 1) for at, node in enumerate(site.nodes)
    }
    finding = record.findings[0]
    assert finding.id == "distributed.slow_node", _ids(record)
    assert finding.evidence["node"] == slow.name and finding.evidence["phase"] == "data"
    assert finding.speedup is not None and finding.speedup.likely > 1.2
    assert "distributed.straggler" not in _ids(record), "the machine is the cause, not one of its ranks"


def _compared(fleet: Fleet) -> Run | None:
    """The run, once every machine has enough steps to be compared."""
    run = fleet.record("ddp").run
    return run if all(node.wait_share is not None for node in run.nodes) else None


def test_skew_waiting_and_waste(site: Site) -> None:
    fleet = Fleet(site.prometheus)
    run = wait_for(lambda: _compared(fleet), every=1.0)
    by_name = {node.name: node for node in run.nodes}
    slow = by_name.pop(site.nodes[SLOW].name)
    assert slow.skew_ratio is not None and slow.skew_ratio > 1.5
    assert slow.extra_seconds is not None and slow.extra_seconds > 0.03
    for node in by_name.values():
        assert node.wait_share is not None and slow.wait_share is not None
        assert node.wait_share > 0.2 > slow.wait_share
    assert run.waste is not None and run.waste.waiting_rank_hours is not None
    assert 0 < run.waste.waiting_rank_hours < (time.time() - run.started) / 3600 * NODES * RANKS


def test_gpu_hours(site: Site) -> None:
    """GIVEN a run that the simulated source puts on two GPUs a machine THEN it had hours times GPUs."""
    run = Fleet(site.prometheus).record("ddp").run
    assert (
        run.waste is not None
        and run.waste.held_gpu_hours is not None
        and run.waste.idle_gpu_hours is not None
    )
    hours = (time.time() - run.started) / 3600 * NODES * RANKS
    assert 0.3 * hours < run.waste.held_gpu_hours < 1.1 * hours
    assert 0 < run.waste.idle_gpu_hours <= run.waste.held_gpu_hours, "it computes on cores"
    assert all(node.gpus == RANKS and node.busy_ratio is not None for node in run.nodes)


def test_show_says_it_in_words(site: Site) -> None:
    done = gpumon("show", "ddp", "--prometheus", site.prometheus)
    assert done.returncode == 0, done.stderr
    slow = site.nodes[SLOW].name
    assert f"Slow node: {slow} needs" in done.stdout
    assert "nodes (4; 8 of 8 ranks seen)" in done.stdout
    assert "Waiting for slower ranks" in done.stdout and "GPU-hours" in done.stdout


def test_runs_lists_it_as_one_line(site: Site) -> None:
    rows = {row["name"]: row for row in answer("runs", "--prometheus", site.prometheus)}
    assert set(rows) == {"ddp"}
    assert rows["ddp"]["ranks"] == 8 and len(rows["ddp"]["nodes"]) == 4
    assert rows["ddp"]["findings"][0] == "distributed.slow_node"
    text = gpumon("runs", "--prometheus", site.prometheus).stdout
    assert "8/8" in text and "distributed.slow_node" in text


def test_victoria_metrics_says_the_same(site: Site) -> None:
    require_program("victoria-metrics")
    assert site.central is not None
    fleet = Fleet(site.central)
    wait_for(lambda: "distributed.slow_node" in _ids(fleet.record("ddp")), every=1.0)
    run = fleet.record("ddp").run
    assert [node.name for node in run.nodes] == [node.name for node in site.nodes]
    assert run.waste is not None and run.waste.held_gpu_hours


def test_the_screen_shows_it(site: Site, tmp_path: Path) -> None:
    picture = tmp_path / "fleet.svg"
    done = gpumon("tui", "--prometheus", site.prometheus, "--screenshot", str(picture), "--after", "0.5")
    assert done.returncode == 0, done.stderr
    text = picture.read_text(encoding="utf-8").replace("&#160;", " ")
    assert "ddp" in text and "Slow node" in text and site.nodes[SLOW].name in text


def test_the_page_shows_it(site: Site, tmp_path: Path) -> None:
    """GIVEN a daemon that shows what Prometheus knows WHEN a browser opens its page THEN the run of all
    machines is there with its slow one, the run's own page compares them, and its metrics repeat nobody's."""
    slow = site.nodes[SLOW].name
    with Daemon(tmp_path, "--prometheus", site.prometheus) as daemon:
        assert f"1 run on the machines that {site.prometheus} scrapes" in daemon.log
        opened = browser(tmp_path, daemon.url)
        wait_for(lambda: (daemon.metric("gpumon_http_streams") or 0) >= 1)
        report = daemon.get("/runs/ddp")[2].decode()
        metrics = daemon.get("/metrics")[2].decode()
        daemon.stop()
        shown = opened.communicate(timeout=PATIENCE)[0].decode()
    assert "ddp" in shown and "Slow node" in shown and slow in shown
    assert "Machines" in report and "8 of 8 ranks seen" in report and "rank-hours" in report
    assert all(f"<td>{node.name}</td>" in report for node in site.nodes)
    assert "gpumon_build_info" in metrics and "gpumon_run_info" not in metrics and "gpumon_gpu" not in metrics


def test_bad_input_is_one_sentence_each(site: Site) -> None:
    """Exit codes: 2 for what the user has to correct, 3 when nobody answers."""
    url, daemon = site.prometheus, f"{site.nodes[0].host}:{site.daemons[0].port}"
    for words, code, said in (
        (("show", "nothing", "--prometheus", url), 2, "there is no run 'nothing'"),
        (("show", "ddp", "--prometheus", "ftp://x"), 2, "is not the address of a Prometheus"),
        (("show", "ddp", "--prometheus", f"http://{daemon}"), 2, "answers, but not as Prometheus does"),
        (("runs", "--prometheus", "http://127.0.0.1:9"), 3, "no Prometheus answers at http://127.0.0.1:9"),
        (("daemon", "--prometheus", "http://127.0.0.1:9"), 3, "no Prometheus answers at http://127.0.0.1:9"),
        (("daemon", "--since", "1h"), 2, "--since is about --prometheus"),
        (("runs", "--prometheus", url, "--since", "soon"), 2, "'soon' is not a length of time"),
        (("runs", "--since", "1h"), 2, "--since is about --prometheus"),
        (("runs", "--prometheus", url, "--connect", "http://x"), 2, "exclude each other"),
    ):
        done = gpumon(*words)
        assert done.returncode == code, (words, done.stderr)
        assert said in done.stderr and done.stderr.startswith("gpumon: ") and "Traceback" not in done.stderr


def test_half_of_the_machines_go_away(site: Site) -> None:
    """The last test: it ends two daemons. WHEN two machines report no more THEN they are lost by name, with
    their ranks, the others are still compared, and the exit code is 1."""
    gone = site.nodes[:2]
    for daemon in site.daemons[:2]:
        daemon.stop()
    fleet = Fleet(site.prometheus)
    wait_for(lambda: len(fleet.record("ddp").run.missing_ranks) == 4, every=0.5)
    record = fleet.record("ddp")
    lost = [node for node in record.run.nodes if node.state == "lost"]
    assert [node.name for node in lost] == [node.name for node in gone]
    assert all(node.unreachable for node in lost) and record.run.missing_ranks == (0, 1, 2, 3)
    assert record.findings[0].id == "distributed.lost_nodes" and record.findings[0].severity == "critical"
    done = gpumon("show", "ddp", "--prometheus", site.prometheus)
    assert done.returncode == 1, done.stderr
    assert "Lost nodes: node-1, node-2 (ranks 0–3)" in done.stdout and "2 still report" in done.stdout
    assert "unreachable" in done.stdout
