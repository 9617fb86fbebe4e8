"""A machine's prices as measured by `sdk/calibrate.py`, and how they adjust the policy's own.

The policy's prices were fitted to whole trainings on one machine, where everything is colder than in an
isolated measurement. So measured prices do not replace them but scale them, by how this machine compares with
that one in the same measurement.
"""

from __future__ import annotations

from dataclasses import replace

from msgspec import Struct

from monitor.model.policy import DEFAULT_POLICY, Policy


class Prices(Struct, frozen=True):
    """What `sdk/calibrate.py` measured; seconds unless the name says otherwise."""

    torch: str
    op_seconds_cpu: float
    cpu_flops: float
    memory_bytes_per_second: float
    worker_start_seconds: float
    worker_transport_seconds: float
    worker_batch_seconds: float


class Calibration(Struct, frozen=True):
    """The prices of one kind of machine, and when they were measured."""

    machine: str
    """Cores and CPU: "2 × AMD EPYC"."""
    time: float
    prices: Prices


REFERENCE = Prices(
    torch="2.13.0+cpu",
    op_seconds_cpu=8.8e-6,
    cpu_flops=1.02e11,
    memory_bytes_per_second=2.0e10,
    worker_start_seconds=0.08,
    worker_transport_seconds=0.00075,
    worker_batch_seconds=0.0011,
)
"""The machine the policy's prices were fitted on (2 × AMD EPYC), measured the same way, best of ten."""
SCALED = {
    "op_seconds_cpu": "op_seconds_cpu",
    "cpu_flops": "cpu_flops",
    "worker_start_seconds": "worker_start_seconds",
    "worker_transport_seconds": "worker_transport_seconds",
    "worker_pinned_seconds": "worker_transport_seconds",
    "worker_batch_seconds": "worker_batch_seconds",
}
"""Policy price → the measurement it follows. The policy's ratios (`worker_slowdown`, `crowded_cores`) stay
estimates: a one-second measurement cannot determine them."""
MOST_APART = 20.0
"""No machine used for training is this many times faster or slower: such a figure is a broken measurement."""


def is_sane(prices: Prices) -> bool:
    """Whether every figure is positive and plausible."""
    return all(1.0 / MOST_APART < _ratio(prices, name) < MOST_APART for name in set(SCALED.values()))


def _ratio(prices: Prices, name: str) -> float:
    measured: float = getattr(prices, name)
    reference: float = getattr(REFERENCE, name)
    return measured / reference


def calibrated(policy: Policy, prices: Prices) -> Policy:
    """The policy with this machine's prices; prices a site has set itself stay."""
    scaled = {
        name: getattr(policy, name) * _ratio(prices, measured)
        for name, measured in SCALED.items()
        if getattr(policy, name) == getattr(DEFAULT_POLICY, name)
    }
    return replace(policy, **scaled, prices_measured=True)
