"""The unit: accepted by systemd, well locked down, and consistent with the daemon and its folders."""

from __future__ import annotations

import configparser
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import PATIENCE, require_program

DEPLOY = Path(__file__).resolve().parents[3] / "deploy" / "systemd"
UNIT = DEPLOY / "gpumon.service"
MOST_EXPOSED = 2.5


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The unit with a program that exists here."""
    copy = tmp_path / "gpumon.service"
    copy.write_text(UNIT.read_text().replace("/opt/gpumon/bin/gpumon daemon", "/bin/true"))
    return copy


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = require_program("systemd-analyze")
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=PATIENCE)


def test_systemd_accepts_it(installed: Path) -> None:
    done = analyze("verify", "--man=no", "--recursive-errors=no", installed)
    assert done.returncode == 0 and "gpumon.service" not in done.stderr, done.stderr


def test_it_is_well_closed(installed: Path) -> None:
    done = analyze("security", "--offline=true", "--no-pager", installed)
    level = re.search(r"exposure level for gpumon.service: ([\d.]+)", done.stdout)
    assert level and float(level[1]) <= MOST_EXPOSED, done.stdout


def test_what_it_must_not_lose() -> None:
    parser = configparser.RawConfigParser(strict=False, interpolation=None)
    parser.read_string(UNIT.read_text())
    service = parser["Service"]
    wanted = {
        "user": "gpumon",
        "nonewprivileges": "yes",
        "protectsystem": "strict",
        "capabilityboundingset": "",
        "type": "notify",
        "statedirectory": "gpumon",
        "runtimedirectory": "gpumon",
        "devicepolicy": "closed",
    }
    assert {key: service[key] for key in wanted} == wanted
    allowed = re.findall(r"^DeviceAllow=(\S+)", UNIT.read_text(), re.M)
    assert {"char-nvidia", "char-nvidia-frontend", "char-nvidia-caps"} <= set(allowed)


def test_folder_and_user_fit_the_unit() -> None:
    line = next(
        line for line in (DEPLOY / "gpumon.tmpfiles").read_text().splitlines() if line.startswith("d ")
    )
    assert line.split() == ["d", "/dev/shm/gpumon", "3773", "gpumon", "gpumon", "-"]
    assert "GPUMON_DIR=/dev/shm/gpumon" in UNIT.read_text()
    assert (DEPLOY / "gpumon.sysusers").read_text().splitlines()[-1].startswith("u gpumon ")
