"""What is said of packages and torch."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.doctor import software
from monitor.doctor.check import Context
from monitor.doctor.probes import ProbeError
from tests.unit.doctor.prepared import TWO_GPUS, complains


def test_versions_of_packages(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    assert software.python(context).status == "PASS"
    monkeypatch.setattr(
        software, "_requirements", lambda: ["psutil>=6", "no-such-package>=1", "msgspec>=999.1"]
    )
    complains(
        software.versions(context), "FAIL", "no-such-package is missing; msgspec .* is older than 999.1"
    )


def test_the_deprecated_pynvml_distribution(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software, "_requirements", list)
    monkeypatch.setattr(software, "_version", lambda name: "11.5")
    complains(software.versions(context), "WARN", "pynvml")


def test_torch_absent_old_or_without_cuda(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, str | None] = {"torch": None}
    monkeypatch.setattr(software, "_version", found.get)
    assert software.torch(context).status == "SKIP"
    found["torch"] = "1.13.1"
    complains(software.torch(context), "WARN", "older")
    found["torch"] = "2.13.0+cpu"
    assert software.torch(context).status == "PASS"
    context.nvml = TWO_GPUS
    complains(software.torch(context), "WARN", "cannot use the GPU")


def test_deep_torch(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    context.deep = True
    answer = {"torch": "2.13.0", "cuda_build": "12.8", "available": False, "devices": 0}
    monkeypatch.setattr(software, "_version", lambda name: "2.13.0")
    monkeypatch.setattr(software, "ask_torch", lambda: answer)
    assert software.torch(context).status == "PASS"  # no GPU, none expected
    context.nvml = TWO_GPUS
    complains(software.torch(context), "FAIL", "built for CUDA 12.8")
    monkeypatch.setattr(software, "ask_torch", lambda: answer | {"available": True, "devices": 2})
    assert software.torch(context).facts["devices"] == 2


def test_a_torch_that_does_not_import(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> dict[str, Any]:
        raise ProbeError("ImportError: libcudnn.so.9")

    context.deep = True
    monkeypatch.setattr(software, "_version", lambda name: "2.13.0")
    monkeypatch.setattr(software, "ask_torch", broken)
    complains(software.torch(context), "FAIL", "libcudnn")
