"""What remains of a run for a viewer who does not own it. Every text of the model is either public, by this
list, or the owner's: a new one fails the test until that is decided."""

from __future__ import annotations

import json
import re
import typing
from typing import Any

import msgspec
import pytest

from monitor.model.finding import Finding, FindingGroup, Remedy, Speedup
from monitor.model.history import RunRecord
from monitor.model.host import Process
from monitor.model.run import Run
from monitor.model.snapshot import Snapshot
from monitor.model.verdict import Verdict
from monitor.store.ledger import Entry
from monitor.web import api
from monitor.web.privacy import Viewer, for_viewer, record_for_viewer
from tests import scene

MARK = "SECRET-"
PUBLIC = {
    "Run": {
        "id", "name", "user", "claimed_id", "hostname", "container", "pod", "namespace", "slurm_job",
        "git_commit",
        "sdk_version", "way", "framework", "error",
    },
    "Finding": {"id", "run", "gpu", "why", "cause", "subject"},
    "Process": {
        "name", "user", "container", "container_name", "pod", "namespace", "slurm_job", "run", "run_label",
    },
    "Verdict": {"rule", "note"},
    "Remedy": {"settings"},
    "Speedup": set(),
    "FindingGroup": {"rule"},
}  # fmt: skip
"""All other text is for the owner: commands, paths, lines of code, sentences that may quote them."""
QUOTING = ("hotspots", "work", "sites", "keeps", "per_epoch", "source", "env", "a key of a later version")
"""Keys of a run's configuration that may quote the user's code."""


def marked(struct: Any, **known: Any) -> Any:
    """One of these, with a distinct mark in every text field."""
    hints = typing.get_type_hints(struct)
    texts = {
        name: f"{MARK}{struct.__name__}.{name}"
        for name in struct.__struct_fields__
        if hints[name] in (str, str | None) and name not in known
    }
    return struct(**texts, **known)


def leaked(body: Any) -> dict[str, set[str]]:
    """Kind → fields whose mark is found anywhere."""
    found: dict[str, set[str]] = {kind: set() for kind in PUBLIC}
    for kind, name in re.findall(rf"{MARK}(\w+)\.(\w+)", json.dumps(msgspec.to_builtins(body))):
        found[kind].add(name)
    return found


def made(verdict: str) -> Snapshot:
    run = marked(
        Run, state="running", started=1.0, ranks=(), owner_uid=7, verdict=marked(Verdict, kind=verdict),
        script=f"/home/{MARK}Run.script/train.py",
        config={"loader": {"num_workers": 2}, **dict.fromkeys(QUOTING, f"{MARK}Run.config")},
        combined=marked(Speedup, low=1.0, likely=2.0, high=3.0),
    )  # fmt: skip
    finding = marked(
        Finding, severity="warning", run=run.id, speedup=marked(Speedup, low=1.0, likely=2.0, high=3.0),
        remedy=marked(Remedy, settings=(f"{MARK}Remedy.settings",)),
        evidence={"hot_code": f"{MARK}Finding.evidence", "share": 0.5},
    )  # fmt: skip
    process = marked(Process, pid=1, owner_uid=7, run=run.id)
    group = marked(
        FindingGroup, severity="warning", title=finding.title, subject="", findings=(0,),
        speedup=finding.speedup,
    )  # fmt: skip
    parts = {"runs": (run,), "findings": (finding,), "processes": (process,), "groups": (group,)}
    return msgspec.structs.replace(scene.snapshot(), **parts)


@pytest.mark.parametrize("verdict", ["fix", "hint"])
def test_only_what_is_public_is_left_for_others(verdict: str) -> None:
    seen = for_viewer(made(verdict), Viewer(uid=8))
    kept = leaked([seen.runs, seen.findings, seen.processes, seen.groups])
    assert kept == {kind: names - {"run"} if kind != "Run" else names for kind, names in PUBLIC.items()}
    assert seen.runs[0].config == {"loader": {"num_workers": 2}}
    assert seen.findings[0].evidence == {"share": 0.5} and seen.groups[0].title == seen.findings[0].cause


def test_a_record_of_history_is_as_private() -> None:
    whole = made("fix")
    kept = leaked(record_for_viewer(RunRecord(whole.runs[0], whole.findings), Viewer()))
    assert kept["Run"] == PUBLIC["Run"] and kept["Finding"] == PUBLIC["Finding"] - {"run"}


@pytest.mark.parametrize("viewer", [Viewer(uid=7), Viewer(sees_all=True)])
def test_the_owner_sees_everything(viewer: Viewer) -> None:
    whole = made("fix")
    assert for_viewer(whole, viewer) == whole
    assert record_for_viewer(RunRecord(whole.runs[0], whole.findings), viewer).run == whole.runs[0]


def test_nobody_owns_what_has_no_owner() -> None:
    assert not Viewer(None).owns(None) and not Viewer(0).owns(None) and Viewer(sees_all=True).owns(None)


def test_a_prediction_is_as_private() -> None:
    entry = Entry("run", "a.b", "", f"/home/{MARK}Run.script/train.py", 1.0, 2.0, 3.0, 4.0, owner_uid=7)
    changed = msgspec.structs.replace(entry, changed=f"the code of {MARK}Run.config")
    assert api._entry(changed, Viewer(uid=7)) == changed
    seen = api._entry(changed, Viewer(uid=8))
    assert not leaked(seen)["Run"] and seen.script == "train.py" and seen.likely == 2.0
