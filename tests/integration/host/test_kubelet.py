"""The kubelet's socket, served by a real gRPC server: what is asked, what results, and what goes wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.host.kubelet import ASK_SECONDS, STALE_SECONDS, Allotment, Kubelet
from tests.conftest import require_program, wait_for
from tests.integration.daemon.process import Daemon
from tests.nvml.standin import MigSlice, Proc, StandIn

pytest.importorskip("grpc")
from tests.kubelet import FakeKubelet, Given


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    return tmp_path / "kubelet.sock"


@pytest.fixture
def kubelet(socket: Path) -> Iterator[Kubelet]:
    client = Kubelet(socket)
    yield client
    client.close()


def answered(kubelet: Kubelet, now: float) -> tuple[Allotment, ...]:
    """What it says once the server has answered; time stands still in the meantime."""
    return wait_for(lambda: kubelet.allotments(now)) or ()


def test_gpus_of_containers_are_read_and_other_devices_are_not(socket: Path, kubelet: Kubelet) -> None:
    given = (
        Given("bert-0", ["GPU-a::1"]),
        Given("net", ["0", "mlx5_0"], resource="example.com/nic"),
        Given("old", ["1"]),
    )
    with FakeKubelet(socket, *given) as server:
        found = answered(kubelet, 0.0)
        assert kubelet.allotments(1.0) == found and server.asked == 1, (
            "asked every ten seconds, not every tick"
        )
    assert found == (
        Allotment("bert-0", "team-a", "main", "GPU-a::1"),
        Allotment("net", "team-a", "main", "mlx5_0"),
        Allotment("old", "team-a", "main", "1"),
    )


def test_a_kubelet_that_went_away_is_believed_for_a_minute(socket: Path, kubelet: Kubelet) -> None:
    with FakeKubelet(socket, Given("bert-0", ["GPU-a"])):
        assert answered(kubelet, 0.0)
    assert kubelet.allotments(ASK_SECONDS), "asked again, in vain"
    assert kubelet.allotments(STALE_SECONDS + 1.0) == ()
    with FakeKubelet(socket, Given("bert-1", ["GPU-a"])):
        late = (STALE_SECONDS + ASK_SECONDS * n for n in range(1, 1_000_000))
        assert wait_for(lambda: kubelet.allotments(next(late)))[0].pod == "bert-1"


def test_no_socket_imports_nothing(socket: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from monitor.host.kubelet import Kubelet\n"
        "assert Kubelet(Path(sys.argv[1])).allotments(0.0) == (); assert 'grpc' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", script, str(socket)]).returncode == 0


def test_the_daemon_says_whose_every_gpu_is(tmp_path: Path, socket: Path) -> None:
    """Two pods time-share GPU 0, one has half of GPU 1, one holds GPU 2 without using it."""
    require_program("cc")
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "nvidia2").write_text("4711\n")
    with StandIn(gpus=3) as nvml, FakeKubelet(socket) as server:
        nvml.gpu(0).processes(Proc(pid=os.getpid(), memory=6 << 30, sm=55))
        nvml.gpu(1).mig(MigSlice(gi=1), MigSlice(gi=2))
        uuids = [nvml.gpu(index).uuid for index in range(3)]
        server.given = (
            Given("bert-0", [f"{uuids[0]}::0", f"{uuids[0]}::1"]),
            Given("bert-1", [f"{uuids[0]}::2"]),
            Given("half", ["MIG-00000001-0000-4000-8000-000000000001"], resource="nvidia.com/mig-1g.10gb"),
            Given("idle", [uuids[2]], container="notebook"),
        )
        options = ("--source", "nvml", "--pod-resources", str(socket), "--gpu-jobs", str(jobs))
        with Daemon(tmp_path, *options, environment=nvml.environment()) as daemon:
            wait_for(lambda: daemon.metric("gpumon_gpu_pod", 'gpu="2"', 'container="notebook"') == 1)
            assert daemon.metric("gpumon_gpu_pod", 'gpu="0"', 'pod="bert-0"') == 2
            assert daemon.metric("gpumon_gpu_pod", 'gpu="0"', 'pod="bert-1"') == 1
            assert daemon.metric("gpumon_gpu_pod", 'mig_uuid="MIG-00000001-', 'pod="half"') == 1
            assert daemon.metric("gpumon_gpu_slurm_job", 'gpu="2"', 'slurm_job="4711"') == 1
            mine = ('gpu="0"', f'pid="{os.getpid()}"', 'process="')
            wait_for(lambda: daemon.metric("gpumon_gpu_process_sm_ratio", *mine) == 0.55)
            assert daemon.metric("gpumon_gpu_process_memory_bytes", *mine) == 6 << 30
