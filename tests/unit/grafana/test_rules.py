"""Rules: accepted by promtool, every alert shown firing and not firing, ids shared with advice."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from grafana.build import HERE, alert_groups, recording_groups
from grafana.rules.model import DOCS, OWN_IDS
from grafana.rules.recording import CONDITIONS
from tests.conftest import PATIENCE, require_program
from tests.unit.grafana.alert_cases import CARD, CASES, card, live

FILES = [HERE / "rules" / "recording.yaml", HERE / "rules" / "alerts.yaml"]
ALERTS = {rule["alert"]: rule for group in alert_groups()["groups"] for rule in group["rules"]}


def promtool(*arguments: str | Path) -> None:
    done = subprocess.run(
        [require_program("promtool"), *arguments], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr


def unit(series: dict[str, str], tests: list[dict[str, Any]]) -> dict[str, Any]:
    inputs = [{"series": name, "values": values} for name, values in series.items()]
    return {"interval": "30s", "input_series": inputs, "promql_expr_test": tests}


FIRING = """count by (alertname, case) (label_replace(label_replace(
  ALERTS{alertstate="firing"}, "case", "$1", "instance", "node(.*)"), "case", "$1", "run", "r(.*)"))"""


def apart(name: str, number: int) -> str:
    """The same series, on a machine and of a run that only this case uses."""
    return name.replace('"node1"', f'"node{number}"').replace('run="r1"', f'run="r{number}"')


def all_cases() -> dict[str, Any]:
    """All cases in one evaluation, because promtool is slow for each."""
    series = {apart(name, n): values for n, case in enumerate(CASES) for name, values in case.series.items()}
    fires = [(name, n) for n, case in enumerate(CASES) for name in case.fires]
    samples = [{"labels": f'{{alertname="{name}", case="{n}"}}', "value": 1} for name, n in fires]
    return unit(series, [{"expr": FIRING, "eval_time": "20m", "exp_samples": samples}])


def run_units(folder: Path, units: list[dict[str, Any]]) -> None:
    path = folder / "rules_test.yaml"
    path.write_text(
        yaml.safe_dump(
            {"rule_files": [str(file) for file in FILES], "evaluation_interval": "30s", "tests": units}
        )
    )
    promtool("test", "rules", path)


def test_promtool_finds_nothing_to_say() -> None:
    promtool("check", "rules", *FILES)


def test_every_alert_fires_and_keeps_quiet(tmp_path: Path) -> None:
    run_units(tmp_path, [all_cases()])


def test_every_alert_has_both_kinds_of_cases() -> None:
    fires = {name for case in CASES for name in case.fires}
    assert fires == set(ALERTS)
    assert sum(not case.fires for case in CASES) >= len(ALERTS) - 2


@pytest.mark.parametrize("name", sorted(ALERTS))
def test_alerts_say_what_why_and_what_to_do(name: str) -> None:
    labels, notes = ALERTS[name]["labels"], ALERTS[name]["annotations"]
    assert labels["rule"] in DOCS or labels["rule"] in OWN_IDS
    assert notes["summary"] and notes["description"].endswith(".")
    assert (labels["rule"] in DOCS) == ("remedy" in notes)


def test_no_id_is_left_over() -> None:
    assert set(OWN_IDS) <= {alert["labels"]["rule"] for alert in ALERTS.values()}


def condition(name: str) -> list[dict[str, Any]]:
    labels = f'{{__name__="gpumon:gpu_condition", {CARD}, condition="{name}"}}'
    return [
        {"expr": "gpumon:gpu_condition", "eval_time": "20m", "exp_samples": [{"labels": labels, "value": 1}]}
    ]


@pytest.mark.slow
def test_a_gpu_has_exactly_one_condition(tmp_path: Path) -> None:
    run = live() | {f'gpumon_gpu_run{{{CARD}, run="r1"}}': "1x60"}
    shared = run | {f'gpumon_gpu_run{{{CARD}, run="r2"}}': "1x60"}
    scenes = [
        ("active", card("0.8x60") | run),
        ("active", card("0.8x60") | shared),
        ("active", card("0.3x60", processes="1x60")),
        ("starved", card("0.3x60", processes="1x60") | run),
        ("held", card("0x60", processes="1x60")),
        ("free", card("0x60", processes="0x60")),
        ("free", card("0x60")),
        ("unknown", {f"gpumon_gpu_up{{{CARD}}}": "1x60"}),
        ("lost", card("0.8x38", processes="1x38") | {f"gpumon_gpu_up{{{CARD}}}": "1x38 0x20"}),
    ]
    run_units(tmp_path, [unit(series, condition(name)) for name, series in scenes])
    assert {name for name, _ in scenes} == set(CONDITIONS)


def test_waste_is_shared_by_runs_on_one_gpu(tmp_path: Path) -> None:
    """GIVEN a GPU at 40 % that two runs share THEN 0.6 GPUs are wasted, 0.3 by each."""
    series = card("0.4x60") | {f'gpumon_gpu_run{{{CARD}, run="{run}"}}': "1x60" for run in ("a", "b")}
    each = [{"labels": f'{{job="gpumon", run="{run}"}}', "value": 0.3} for run in ("a", "b")]
    expr = "round(sum by (job, run) (gpumon:run_wasted_gpus:sum), 0.001)"
    whole = [{"labels": "{}", "value": 0.6}]
    run_units(
        tmp_path,
        [
            unit(series, [{"expr": expr, "eval_time": "20m", "exp_samples": each}]),
            unit(
                series,
                [
                    {
                        "expr": "round(sum(gpumon:wasted_gpus:sum), 0.001)",
                        "eval_time": "20m",
                        "exp_samples": whole,
                    }
                ],
            ),
        ],
    )


def test_every_recording_says_what_it_means() -> None:
    records = [rule["record"] for group in recording_groups()["groups"] for rule in group["rules"]]
    assert len(set(records)) == len(records) - len(CONDITIONS) + 1
