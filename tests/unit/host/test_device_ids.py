"""Names of GPUs as Kubernetes' device plugins and Slurm's job files spell them."""

from __future__ import annotations

import pytest

from monitor.host.device_ids import parse_device_id
from monitor.model.gpu import Gpu, MigInstance

UUID = "GPU-be6e8706-1ee7-9ce9-7c5e-80ebf0f66714"
PARTS = (MigInstance("MIG-a", gpu_instance=7, compute_instance=0), MigInstance("MIG-b", None, 9, 1))
GPU = Gpu(index=0, uuid=UUID, minor=5, mig=PARTS)
OTHER = Gpu(index=3, uuid="GPU-other", minor=0)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (UUID, UUID),
        (f"{UUID}::3", UUID),
        ("MIG-a", "MIG-a"),
        ("MIG-b::0", "MIG-b"),
        (f"MIG-{UUID}/7/0", "MIG-a"),
        ("nvidia5", UUID),
        ("nvidia5/vgpu2", UUID),
        ("nvidia5/gi9", "MIG-b"),
        ("nvidia5/gi9/vgpu1", "MIG-b"),
        ("0", UUID),
        ("0:1", "MIG-b"),
        ("0.7", "MIG-a"),
        ("0::2", UUID),
    ],
)
def test_every_spelling_finds_its_gpu_and_no_other(text: str, meant: str) -> None:
    named = parse_device_id(text)
    assert named is not None
    found = named.find(GPU)
    assert found is not None and found.uuid == meant
    assert named.find(OTHER) is None


@pytest.mark.parametrize("text", ["nvidia0", "3"])
def test_device_files_and_indices_are_not_mixed_up(text: str) -> None:
    named = parse_device_id(text)
    assert named is not None and named.find(GPU) is None and named.find(OTHER) is OTHER


@pytest.mark.parametrize("text", ["", "mlx5_0", "nvidia5.tmp", "GPU", "0000:3b:00.0", "1-2", "nvidia"])
def test_what_is_no_gpu_is_none(text: str) -> None:
    assert parse_device_id(text) is None


def test_an_instance_that_is_not_there_is_none() -> None:
    for text in ("MIG-c", "nvidia5/gi1", "0:2", "0.1", f"MIG-{UUID}/7/1"):
        named = parse_device_id(text)
        assert named is not None and named.find(GPU) is None
