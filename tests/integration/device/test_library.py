"""If the stand-in is not available, it says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.device import Unavailable, build


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", str(tmp_path / "no-such-compiler"))
    with pytest.raises(Unavailable, match="no C\\+\\+ compiler"):
        build()


def test_another_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.device.library.TORCH_VERSION", "0.0.0")
    with pytest.raises(Unavailable, match=r"written for torch 0\.0\.0"):
        build()


def test_built_once() -> None:
    first = build()
    made = first.stat().st_mtime
    assert build() == first
    assert first.stat().st_mtime == made
