"""What is said of the driver, NVML and the device files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from monitor.doctor import gpu
from monitor.doctor.check import Context
from monitor.doctor.probes import NvmlAnswer
from tests.unit.doctor.prepared import TWO_GPUS, complains, write


def test_a_machine_without_gpu_is_a_warning_that_says_how_to_try(context: Context) -> None:
    result = gpu.driver(context)
    complains(result, "WARN", "host readings only")
    assert "--source simulated" in str(result.remedy)
    assert gpu.nvml(context).status == "SKIP"


@pytest.mark.parametrize(("nouveau", "words"), [(True, "nouveau"), (False, "install NVIDIA's driver")])
def test_a_card_without_driver(context: Context, nouveau: bool, words: str) -> None:
    write(context.roots.sys / "bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
    write(context.roots.sys / "bus/pci/devices/0000:01:00.0/class", "0x030200\n")
    write(context.roots.sys / "bus/pci/devices/0000:01:00.1/vendor", "0x10de\n")
    write(context.roots.sys / "bus/pci/devices/0000:01:00.1/class", "0x040300\n")  # its sound device
    if nouveau:
        write(context.roots.sys / "module/nouveau/version", "")
    result = gpu.driver(context)
    complains(result, "WARN", r"1 NVIDIA card\(s\)")
    assert words in str(result.remedy)


def test_driver_version_from_the_kernel(context: Context) -> None:
    text = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\nGCC version: 12.2.0\n"
    write(context.roots.proc / "driver/nvidia/version", text)
    assert gpu.driver(context).facts["version"] == "535.183.01"
    complains(gpu.nvml(context), "FAIL", "libnvidia-ml.so.1 not found")


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (TWO_GPUS, "PASS", r"2 GPU\(s\): H"),
        (NvmlAnswer(error="no answer within 10 s", hung=True), "FAIL", "hangs"),
        (NvmlAnswer(error="Driver/library version mismatch", code=gpu.MISMATCH), "FAIL", "mismatch"),
        (NvmlAnswer(driver="1.0"), "WARN", "no GPU"),
        (
            NvmlAnswer(driver="1.0", gpus=({"index": 3, "error": "GPU is lost"},)),
            "FAIL",
            "GPU 3: GPU is lost",
        ),
    ],
)
def test_what_nvml_says(context: Context, answer: NvmlAnswer, status: str, words: str) -> None:
    context.nvml = answer
    result = gpu.nvml(context)
    assert result.status == status
    assert re.search(words, result.detail)
    assert bool(result.remedy) == (status != "PASS")


def test_device_files_that_are_missing_or_closed(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "device_nodes", lambda directory: [])
    assert gpu.device_permissions(context).status == "SKIP"
    write(context.roots.sys / "module/nvidia/version", "570.1\n")
    complains(gpu.device_permissions(context), "FAIL", "no /dev/nvidia")
    monkeypatch.setattr(gpu, "device_nodes", lambda directory: [Path("/dev/nvidia0")])
    monkeypatch.setattr("monitor.doctor.gpu.os.access", lambda path, mode: False)
    complains(gpu.device_permissions(context), "FAIL", "no access to /dev/nvidia0")
    monkeypatch.setattr("monitor.doctor.gpu.os.access", lambda path, mode: True)
    assert gpu.device_permissions(context).status == "PASS"


def test_only_device_files_of_the_driver_count(tmp_path: Path) -> None:
    (tmp_path / "nvidia0").write_text("no device")
    (tmp_path / "nvidia-caps").mkdir()
    assert gpu.device_nodes(tmp_path) == []
