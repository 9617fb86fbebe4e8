"""Network traffic per interface, and of RDMA ports, whose traffic the interface counters miss."""

from __future__ import annotations

from monitor.host.procfs import Every, HeldFile, Rates, Roots, read_int
from monitor.model.host import Network
from sdk.patterns import later

INVENTORY_SECONDS = 60.0
"""Our choice: interfaces are rarely added."""
RDMA_SECONDS = 5.0
"""RDMA counters are queried from the adapter's firmware, so they are read rarely."""
RDMA_WORD_BYTES = 4
"""The kernel counts RDMA traffic in words of four bytes."""
_VIRTUAL = later(r"lo$|(veth|docker|br-|virbr|cni|flannel|cali|tap|tun|dummy|ifb|sit|ip6tnl|kube)")

Bytes = tuple[int, int]
"""received, sent"""


def parse_net_dev(raw: bytes) -> dict[str, Bytes]:
    """Interface → bytes received and sent."""
    found = {}
    for line in raw.splitlines()[2:]:
        name, _, rest = line.partition(b":")
        fields = rest.split()
        if len(fields) >= 9:
            found[name.strip().decode()] = (int(fields[0]), int(fields[8]))
    return found


class NetworkReader:
    """Interfaces backed by hardware; in a container, which has none, its own interfaces."""

    def __init__(self, roots: Roots) -> None:
        self._dev = HeldFile(roots.proc / "net/dev")
        self._class = roots.sys / "class/net"
        self._inventory = Every(INVENTORY_SECONDS)
        self._known: set[str] = set()
        self._chosen: list[str] = []
        self._rates = Rates()
        self._rdma = _RdmaReader(roots)

    def read(self, now: float) -> tuple[Network, ...]:
        raw = self._dev.read(now)
        counters = parse_net_dev(raw) if raw else {}
        if counters.keys() != self._known or self._inventory.due(now):
            self._take_inventory(set(counters))
        found = tuple(_network(self._rates, name, counters[name], now) for name in self._chosen)
        return found + self._rdma.read(now)

    def _take_inventory(self, names: set[str]) -> None:
        self._known = names
        candidates = sorted(name for name in names if not _VIRTUAL.match(name))
        physical = [name for name in candidates if (self._class / name / "device").exists()]
        self._chosen = physical or candidates
        self._rates.keep({(name, way) for name in self._chosen for way in ("in", "out")})

    def close(self) -> None:
        self._dev.close()


class _RdmaReader:
    """InfiniBand and RoCE ports, named like ``mlx5_0:1``; figures are kept until the next read."""

    def __init__(self, roots: Roots) -> None:
        self._class = roots.sys / "class/infiniband"
        self._period = Every(RDMA_SECONDS)
        self._rates = Rates()
        self._last: tuple[Network, ...] = ()

    def read(self, now: float) -> tuple[Network, ...]:
        if self._period.due(now):
            counters = self._counters()
            self._last = tuple(_network(self._rates, name, counters[name], now) for name in counters)
        return self._last

    def _counters(self) -> dict[str, Bytes]:
        found = {}
        for port in sorted(self._class.glob("*/ports/*")):
            received = read_int(port / "counters/port_rcv_data")
            sent = read_int(port / "counters/port_xmit_data")
            if received is not None and sent is not None:
                name = f"{port.parent.parent.name}:{port.name}"
                found[name] = (received * RDMA_WORD_BYTES, sent * RDMA_WORD_BYTES)
        return found


def _network(rates: Rates, name: str, counters: Bytes, now: float) -> Network:
    return Network(
        name=name,
        receive_bytes_per_second=rates.per_second((name, "in"), counters[0], now),
        transmit_bytes_per_second=rates.per_second((name, "out"), counters[1], now),
    )
