"""Names of containers and pods, from the files their runtimes and the kubelet keep.

People know "trainer-7f9c" or "my-notebook", not sixty-four hex digits. Most of these files are readable only
by root; the names of the kubelet's log files are readable by everybody. No runtime is asked over its socket:
a monitoring daemon must not need the right to start containers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from monitor.host.procfs import read_bytes

MAX_BYTES = 1 << 20
MAX_KNOWN = 1024
DOCKER = "var/lib/docker/containers"
CONTAINERD = "run/containerd/io.containerd.runtime.v2.task"
STORAGE = "var/lib/containers/storage/overlay-containers"
KUBELET_LOGS = "var/log/containers"
NAME_KEYS = ("io.kubernetes.cri.container-name", "io.kubernetes.container.name", "nerdctl/name")
POD_KEYS = ("io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name")
NAMESPACE_KEYS = ("io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace")


class Names(NamedTuple):
    container: str | None = None
    pod: str | None = None
    namespace: str | None = None


UNKNOWN = Names()


class ContainerNames:
    """Looks up each container once; a container keeps its name for life."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._known: dict[str, Names] = {}

    def find(self, container: str | None) -> Names:
        if container is None or not container.isalnum():
            return UNKNOWN
        found = self._known.get(container)
        if found is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            found = self._known[container] = self._look_up(container)
        return found

    def _look_up(self, container: str) -> Names:
        sources = (self._kubelet, self._docker, self._bundle, self._podman)
        return next((found for find in sources if (found := find(container)) != UNKNOWN), UNKNOWN)

    def _kubelet(self, container: str) -> Names:
        """The kubelet links every container's log as ``POD_NAMESPACE_NAME-ID.log``; none of the three may
        contain an underscore."""
        end = f"-{container}.log"
        for name in _listing(self._root / KUBELET_LOGS):
            parts = name.removesuffix(end).split("_")
            if name.endswith(end) and len(parts) == 3:
                return Names(container=parts[2], pod=parts[0], namespace=parts[1])
        return UNKNOWN

    def _docker(self, container: str) -> Names:
        document = _load(self._root / DOCKER / container / "config.v2.json")
        labels = _table(_table(document).get("Config")).get("Labels")
        name = _table(document).get("Name")
        plain = name.lstrip("/") if isinstance(name, str) else None
        return _kubernetes(labels)._replace(container=_first(labels, NAME_KEYS) or plain or None)

    def _bundle(self, container: str) -> Names:
        """What containerd and CRI-O pass to the low-level runtime."""
        for path in self._bundles(container):
            found = _kubernetes(_table(_load(path)).get("annotations"))
            if found != UNKNOWN:
                return found
        return UNKNOWN

    def _bundles(self, container: str) -> Iterator[Path]:
        for namespace in _listing(self._root / CONTAINERD):
            yield self._root / CONTAINERD / namespace / container / "config.json"
        yield self._root / STORAGE / container / "userdata/config.json"

    def _podman(self, container: str) -> Names:
        document = _load(self._root / STORAGE / "containers.json")
        for entry in document if isinstance(document, list) else ():
            if _table(entry).get("id") == container:
                names = entry.get("names")
                return Names(str(names[0])) if isinstance(names, list) and names else UNKNOWN
        return UNKNOWN


def _load(path: Path) -> Any:
    """JSON of a runtime's file, or None: absent, unreadable, far too large, or broken."""
    try:
        if os.stat(path).st_size > MAX_BYTES:
            return None
        return msgspec.json.decode(read_bytes(path) or b"null")
    except (OSError, msgspec.DecodeError):
        return None


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _kubernetes(labels: Any) -> Names:
    """What the labels or annotations of a container say."""
    return Names(_first(labels, NAME_KEYS), _first(labels, POD_KEYS), _first(labels, NAMESPACE_KEYS))


def _first(table: Any, keys: tuple[str, ...]) -> str | None:
    found = (_table(table).get(key) for key in keys)
    return next((value for value in found if isinstance(value, str) and value), None)


def _listing(directory: Path) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []
