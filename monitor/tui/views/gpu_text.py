"""The words and figures GPU views share."""

from __future__ import annotations

from monitor.model import units
from monitor.model.gpu import Gpu, Nvlink, Pcie
from monitor.tui.frame import HostFrame
from monitor.tui.text import Span
from monitor.tui.views.symbols import GPU
from monitor.tui.widgets.graph import history


def condition_text(gpu: Gpu) -> str:
    """One word; if the GPU does not answer, also for how long."""
    word = GPU[gpu.condition].word
    return word if gpu.state == "ok" else f"{word} {units.age(gpu.age_seconds)}"


def memory_text(gpu: Gpu) -> str:
    return units.of(gpu.memory_used_bytes, gpu.memory_total_bytes)


def runs_text(gpu: Gpu) -> str:
    """The runs on a GPU, each with its rank there."""
    return ", ".join(gpu.run_labels)


def traffic(link: Pcie | Nvlink) -> str:
    """In and out, as shares of the link if its speed is known, otherwise in bytes per second."""
    received, sent = link.receive_bytes_per_second, link.transmit_bytes_per_second
    if received is None and sent is None:
        return units.ABSENT
    if link.receive_ratio is None and link.transmit_ratio is None:
        return f"{units.number(received, 2)} {units.number(sent, 2)}"
    return f"{units.tight_percent(link.receive_ratio)} {units.tight_percent(link.transmit_ratio)}"


def use_graph(host: HostFrame, gpu: Gpu, width: int, role: str) -> list[Span]:
    """The GPU's use over the last minutes; the newest cell is its own span, because it changes alone."""
    samples = [reading.use for reading in host.recent(gpu.uuid, 2 * width)]
    text = history(samples, width, odd=is_odd_tick(host))[0]
    return [Span(text[:-1], role), Span(text[-1:], role)]


def is_odd_tick(host: HostFrame) -> bool:
    """True on every second tick; see `history`."""
    return host.snapshot is not None and host.snapshot.seq % 2 == 1
