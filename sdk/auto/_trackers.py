"""Which experiment trackers a script logs to, noted for `gpumon track`. We only read the trackers' own
attributes; nothing is sent, and none of their objects is kept alive."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..loop.session import Session
from ..redact import redact_source

MOST = 4
"""Chosen: folders or runs noted per tracker."""
LOOKS = 64
"""Chosen: calls inspected per tracker; the first few show where it logs."""
Describe = Callable[..., dict[str, Any]]
Note = Callable[..., None]


class Trackers:
    """Notes in the configuration what the training being recorded logs to."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._probe: object = None
        self._looks: dict[str, int] = {}

    def noting(self, module: str) -> Note | None:
        """What to call with the arguments of this module's calls, if it belongs to a tracker."""
        if module not in DESCRIBED:
            return None
        return functools.partial(self._note, *DESCRIBED[module])

    def _note(self, kind: str, describe: Describe, *args: Any, **kwargs: Any) -> None:
        if self._probe is not self._session.probe:  # another training begins
            self._probe, self._looks = self._session.probe, {}
        looks = self._looks[kind] = self._looks.get(kind, 0) + 1
        if looks > LOOKS:
            return
        with contextlib.suppress(
            AttributeError, IndexError, TypeError, ValueError
        ):  # a version we do not know
            self._add(kind, describe(*args, **kwargs))

    def _add(self, kind: str, found: dict[str, Any]) -> None:
        known = self._session.config.get("trackers", {})
        noted = known.get(kind, [])
        if found not in noted and len(noted) < MOST:
            self._session.probe.note("trackers", {**known, "folder": os.getcwd(), kind: [*noted, found]})
            self._session.phases_changed()  # writes the meta


def tensorboard(writer: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    return {"log_dir": os.path.abspath(getattr(writer, "log_dir", None) or writer.logdir)}


def wandb(run: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Its files are in ROOT/wandb/RUN/files."""
    root = Path(run.dir).parents[2]
    return {
        "id": run.id,
        "project": run.project,
        "entity": run.entity or None,
        "root": str(root),
        "offline": bool(run.offline),
    }


def mlflow(client: Any, run_id: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    return {"run_id": run_id, "uri": redact_source(str(client.tracking_uri))}


DESCRIBED: dict[str, tuple[str, Describe]] = {
    "torch.utils.tensorboard.writer": ("tensorboard", tensorboard),
    "tensorboardX.writer": ("tensorboard", tensorboard),
    "wandb.sdk.wandb_run": ("wandb", wandb),
    "mlflow.tracking.client": ("mlflow", mlflow),
}
"""Module whose calls are timed → the tracker, and how to find what it writes to."""
