"""Which GPU a rank trains on.

The device's own uuid is certain; so is the driver listing the rank's pid. An index in CUDA_VISIBLE_DEVICES is
used only if nothing better is known: inside a container it counts the container's GPUs, and CUDA may order
devices by speed rather than by bus.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from monitor.model.gpu import Gpu
from monitor.runs.meta import Meta


def gpu_of(meta: Meta, config: Mapping[str, Any], pid: int, gpus: Sequence[Gpu]) -> Gpu | None:
    device = meta.text("device")
    if device is not None and device.startswith("cpu"):
        return None
    by_uuid = _by_uuid(meta.text("device_uuid") or _str(config.get("device_uuid")), gpus)
    if by_uuid is not None:
        return by_uuid
    on = [gpu for gpu in gpus if any(process.pid == pid for process in gpu.processes)]
    if len(on) == 1:
        return on[0]
    return _by_index(device, config, on or gpus, gpus)


def _by_index(
    device: str | None, config: Mapping[str, Any], among: Sequence[Gpu], gpus: Sequence[Gpu]
) -> Gpu | None:
    """`cuda:1` is the second visible device; trusted only if it can be right."""
    if device is None or not device.startswith("cuda"):
        return None
    _, _, number = device.partition(":")
    index = int(number) if number.isascii() and number.isdecimal() else 0
    visible = _visible(config, gpus)
    found = visible[index] if index < len(visible) else None
    return found if found in among else None


def visible_gpus(config: Mapping[str, Any], device: str | None, gpus: Sequence[Gpu]) -> tuple[str, ...]:
    """GPUs this run could use; all of them if nothing restricts it and it trains on one."""
    if _setting(config) is None and not (device or "").startswith("cuda"):
        return ()
    return tuple(gpu.uuid for gpu in _visible(config, gpus))


def _visible(config: Mapping[str, Any], gpus: Sequence[Gpu]) -> list[Gpu]:
    """As CUDA reads the list: it ends at the first entry that names no device."""
    setting = _setting(config)
    if setting is None:
        return list(gpus)
    found: list[Gpu] = []
    for entry in (part.strip() for part in setting.split(",")):
        gpu = next((g for g in gpus if str(g.index) == entry), None) or _by_uuid(entry, gpus)
        if gpu is None:
            break
        found.append(gpu)
    return found


def _setting(config: Mapping[str, Any]) -> str | None:
    env = config.get("env")
    value = config.get("visible_devices")
    if value is None and isinstance(env, dict):
        value = env.get("CUDA_VISIBLE_DEVICES")
    if isinstance(value, list):
        value = ",".join(str(entry) for entry in value)
    return _str(value)


def _by_uuid(uuid: str | None, gpus: Sequence[Gpu]) -> Gpu | None:
    """Exact, or a prefix that matches only one GPU; torch omits the "GPU-"."""
    wanted = _bare(uuid or "")
    if len(wanted) < 4:
        return None
    fits = [gpu for gpu in gpus if _bare(gpu.uuid).startswith(wanted)]
    fits += [gpu for gpu in gpus for mig in gpu.mig if _bare(mig.uuid) == wanted and gpu not in fits]
    return fits[0] if len(fits) == 1 else None


def _bare(uuid: str) -> str:
    return uuid.lower().removeprefix("gpu-").removeprefix("mig-")


def _str(value: Any) -> str | None:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None
