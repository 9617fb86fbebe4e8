"""How others name GPUs: device ids of Kubernetes device plugins, and names of Slurm job files.

| id | written by |
|---|---|
| ``GPU-UUID``, ``MIG-UUID``, with ``::3`` for a time slice | NVIDIA's device plugin |
| ``0``, ``0:1`` (the second MIG instance) | the same, configured to use indices |
| ``MIG-GPU-UUID/1/0`` (GPU and compute instance) | the same, before driver 470 |
| ``nvidia0``, ``nvidia0/gi1``, ``…/vgpu2`` for a time slice | Google's device plugin, by device file |
| ``0.7`` (GPU instance) | job files, as dcgm-exporter reads them |
"""

from __future__ import annotations

from msgspec import Struct

from monitor.model.gpu import Gpu, MigInstance
from sdk.patterns import later

_OLD_MIG = later(r"MIG-(GPU-[\w-]+)/(\d+)/(\d+)")
_DEVICE_FILE = later(r"nvidia(\d+)(?:/gi(\d+))?(?:/vgpu\d+)?")
_INDEX = later(r"(\d+)(?::(\d+)|\.(\d+))?")


class DeviceId(Struct, frozen=True):
    """A GPU by uuid, index or minor; one of its MIG instances by uuid, position or instance ids."""

    uuid: str | None = None
    index: int | None = None
    minor: int | None = None
    mig_uuid: str | None = None
    mig_position: int | None = None
    gpu_instance: int | None = None
    compute_instance: int | None = None

    def find(self, gpu: Gpu) -> Gpu | MigInstance | None:
        """The GPU itself or the instance that is meant; None if it is a different GPU."""
        if self.mig_uuid is not None:
            return next((part for part in gpu.mig if part.uuid == self.mig_uuid), None)
        if (
            gpu.uuid != self.uuid
            and gpu.index != self.index
            and (gpu.minor is None or gpu.minor != self.minor)
        ):
            return None
        if self.mig_position is None and self.gpu_instance is None:
            return gpu
        return next((part for at, part in enumerate(gpu.mig) if self._is(at, part)), None)

    def _is(self, position: int, part: MigInstance) -> bool:
        if self.mig_position is not None:
            return position == self.mig_position
        own_compute = self.compute_instance in (None, part.compute_instance)
        return part.gpu_instance == self.gpu_instance and own_compute


def parse_device_id(text: str) -> DeviceId | None:
    """None: not a GPU name we know."""
    name = text.partition("::")[0]
    if old := _OLD_MIG.fullmatch(name):
        uuid, gpu_instance, compute_instance = old.groups()
        return DeviceId(uuid=uuid, gpu_instance=int(gpu_instance), compute_instance=int(compute_instance))
    if name.startswith("MIG-"):
        return DeviceId(mig_uuid=name)
    if name.startswith("GPU-"):
        return DeviceId(uuid=name)
    return _numbered(name)


def _numbered(name: str) -> DeviceId | None:
    if file := _DEVICE_FILE.fullmatch(name):
        return DeviceId(minor=int(file[1]), gpu_instance=_number(file[2]))
    if index := _INDEX.fullmatch(name):
        position, instance = _number(index[2]), _number(index[3])
        return DeviceId(index=int(index[1]), mig_position=position, gpu_instance=instance)
    return None


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
