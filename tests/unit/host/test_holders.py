"""Who was given a GPU, and what that says about the processes on it."""

from __future__ import annotations

from pathlib import Path

from monitor.host.job_files import JobFiles
from monitor.model.gpu import Gpu, GpuProcess, Holder, MigInstance
from monitor.model.gpu_users import with_pod
from monitor.model.host import Process
from monitor.pipeline.collectors.holders import holders_of

UID = "1b2c3d4e-0000-4444-8888-abcdefabcdef"
ONE = Holder(pod="bert-0", namespace="team-a", container="main")
TWO = Holder(pod="bert-1", namespace="team-b", container="main")


def process(pod: str | None, *holders: Holder, mig: str | None = None) -> Process:
    gpu = Gpu(0, "GPU-0", mig=(MigInstance("MIG-a"), MigInstance("MIG-b")), holders=holders)
    return with_pod(Process(7, pod=pod), [(gpu, GpuProcess(7, mig_uuid=mig))])


def test_time_slices_of_one_container_are_shares() -> None:
    claims = [("GPU-0::1", ONE), ("GPU-0::4", ONE), ("GPU-0::2", TWO), ("GPU-9", TWO), ("odd", TWO)]
    found = holders_of(Gpu(0, "GPU-0"), claims)
    assert [(one.pod, one.shares) for one in found] == [("bert-0", 2), ("bert-1", 1)]


def test_the_only_holder_names_a_pod_known_by_uid() -> None:
    found = process(UID, ONE)
    assert (found.pod, found.namespace, found.container_name) == ("bert-0", "team-a", "main")


def test_of_several_holders_only_the_named_one() -> None:
    assert process("bert-1", ONE, TWO).namespace == "team-b"
    assert process(UID, ONE, TWO).namespace is None, "either could be meant"
    assert process("else", ONE).namespace is None


def test_of_mig_instances_the_one_it_runs_on() -> None:
    parts = Holder("bert-0", "team-a", mig_uuid="MIG-a"), Holder("bert-1", "team-b", mig_uuid="MIG-b")
    assert process(UID, *parts, mig="MIG-b").namespace == "team-b"


def test_what_is_in_no_pod_stays_so() -> None:
    assert process(None, ONE) == Process(7)
    assert process(UID, Holder(slurm_job="3")).pod == UID


def test_job_files_are_read_with_care(tmp_path: Path) -> None:
    (tmp_path / "0").write_text("42\n42\n43_1\n../etc\n")
    (tmp_path / "1").mkdir()
    assert JobFiles(tmp_path).jobs(0.0) == {"0": ("42", "43_1"), "1": ()}
    assert JobFiles(tmp_path / "none").jobs(0.0) == {}
