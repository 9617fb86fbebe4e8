"""Four machines of one run: network namespaces where tests may make them, else four ports of this one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.integration.daemon.process import Daemon
from tests.integration.grafana.stage import child, free_port

SCRIPT = Path(__file__).with_name("train_ddp.py")
NODES, RANKS = 4, 2
GPUS = ("--source", "simulated", "--gpus", str(RANKS))
PORT = 10835


@dataclass(frozen=True)
class Machine:
    """One of the four: how to start something on it, and where it is reached from."""

    name: str
    home: Path
    host: str
    interface: str
    through: tuple[str, ...] = ()

    def daemon(self) -> Daemon:
        listen = ("--listen", f"{self.host}:{PORT}", "--insecure") if self.through else ()
        return Daemon(self.home, *GPUS, *listen, interval="0.5", through=self.through)


@contextmanager
def machines(folder: Path) -> Iterator[list[Machine]]:
    with ExitStack() as stack:
        hosts = stack.enter_context(_namespaces()) if _may_make_namespaces() else None
        made = []
        for at in range(NODES):
            home = folder / f"node-{at + 1}"
            (home / "rings").mkdir(parents=True)
            if hosts is None:
                made.append(Machine(home.name, home, "127.0.0.1", "lo"))
            else:
                space, host = hosts[at]
                made.append(Machine(home.name, home, host, "eth0", ("ip", "netns", "exec", space)))
        yield made


def _may_make_namespaces() -> bool:
    if shutil.which("ip") is None or os.geteuid() != 0:
        return False
    probe = f"gpumon-{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False).returncode == 0
    subprocess.run(["ip", "netns", "del", probe], capture_output=True, check=False)
    return made


@contextmanager
def _namespaces() -> Iterator[list[tuple[str, str]]]:
    """Four namespaces with an address each, joined by a bridge that this machine is on too."""
    tag = str(os.getpid() % 100_000)
    net, bridge = f"10.213.{os.getpid() % 250 + 1}", f"gpb{tag}"
    spaces = [f"gpumon-{tag}-{at}" for at in range(NODES)]
    with ExitStack() as stack:
        _ip("link", "add", bridge, "type", "bridge")
        stack.callback(_ip, "link", "del", bridge)
        _ip("addr", "add", f"{net}.254/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for at, space in enumerate(spaces):
            _ip("netns", "add", space)
            stack.callback(_ip, "netns", "del", space)
            _ip("link", "add", f"gpv{tag}-{at}", "type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("link", "set", f"gpv{tag}-{at}", "master", bridge, "up")
            _ip("-n", space, "addr", "add", f"{net}.{at + 1}/24", "dev", "eth0")
            _ip("-n", space, "link", "set", "eth0", "up")
            _ip("-n", space, "link", "set", "lo", "up")
        yield [(space, f"{net}.{at + 1}") for at, space in enumerate(spaces)]


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def training(nodes: list[Machine], slow: Machine) -> Iterator[None]:
    """A real torchrun over gloo, 4 x 2 ranks; the ranks of one machine load their data slowly."""
    port = str(free_port())
    with ExitStack() as stack:
        for at, node in enumerate(nodes):
            command = [
                *node.through, sys.executable, "-m", "torch.distributed.run", f"--nnodes={len(nodes)}",
                f"--nproc-per-node={RANKS}", f"--node-rank={at}", f"--master-addr={nodes[0].host}",
                f"--master-port={port}", str(SCRIPT), "0.06" if node is slow else "0.0",
            ]  # fmt: skip
            own = {"GPUMON_DIR": str(node.home / "rings"), "GLOO_SOCKET_IFNAME": node.interface}
            log = node.home / "train.log"
            stack.enter_context(child(command, log, OMP_NUM_THREADS="1", PYTHONPATH=os.getcwd(), **own))
        yield
