"""Pushes metrics over OTLP, for sites without a Prometheus. A receiver that hangs holds up nothing else."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from monitor.model.errors import UserError
from monitor.model.settings import Settings
from monitor.web.service import Service

if TYPE_CHECKING:
    from monitor.web.otlp import Otlp

EXTRA = "pip install 'gpumon-train[otlp]'"


class Pusher(threading.Thread):
    """Sends the newest snapshot every so often, until it is stopped."""

    def __init__(self, otlp: Otlp, service: Service, interval: float) -> None:
        super().__init__(name="gpumon-otlp", daemon=True)
        self._otlp, self._service, self._interval = otlp, service, interval
        self._stop_event = threading.Event()

    def run(self) -> None:
        sent = 0
        while not self._stop_event.is_set():
            served = self._service.feed.latest
            if served is not None and served.snapshot.seq > sent:
                sent = served.snapshot.seq
                self._otlp.send(served.snapshot)
            self._stop_event.wait(self._interval)

    def stop(self) -> None:
        """Without waiting: what is being sent may take its time, and the daemon need not."""
        self._stop_event.set()
        self._otlp.close()


def make_pusher(service: Service, settings: Settings) -> Pusher | None:
    """None when nobody asked for it. Raises `UserError` when it cannot work."""
    if settings.otlp is None:
        return None
    try:
        from monitor.web.otlp import Otlp
    except ImportError:
        raise UserError("--otlp needs OpenTelemetry's exporter", hint=EXTRA) from None
    return Pusher(Otlp(settings.otlp, service.metrics), service, settings.otlp_interval)
