"""Other users of this machine, for tests that run as root: processes with their own uid."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PATIENCE
from tests.integration.daemon.process import clean_environment

ROOT = Path(__file__).resolve().parents[1]
NOBODY_IN_PARTICULAR = 61_003
NEEDED = "import sdk, msgspec, uvicorn, starlette, psutil, bcrypt, yaml"


def require_users() -> None:
    """Only root can act for several users, who must be able to run our code; CI must allow both."""
    if os.geteuid() == 0 and python() is not None:
        return
    reason = "only root can act for several users, and they must be able to use a Python with our packages"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def as_user(user: int, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    """Our Python, or the system's with our packages, as another user."""
    command = [python() or "", *arguments]
    return subprocess.Popen(command, **_identity(user), env=_env(**environment), stderr=subprocess.PIPE)


def attempt(user: int, code: str) -> str:
    """The error a user gets when running this, or an empty string."""
    _, errors = as_user(user, "-c", code).communicate(timeout=PATIENCE)
    return errors.decode().strip().splitlines()[-1] if errors else ""


def _identity(user: int) -> dict[str, Any]:
    """With the strictest umask a user may have."""
    return {"user": user, "group": user, "extra_groups": [], "cwd": "/", "umask": 0o077}


def _env(**more: str) -> dict[str, str]:
    packages = [path for path in sys.path if path.endswith("site-packages")]
    path = os.pathsep.join([str(ROOT), *packages])
    return clean_environment(PYTHONPATH=path, HOME="/nonexistent", PYTHONDONTWRITEBYTECODE="1", **more)


@cache
def python() -> str | None:
    """A Python that other users may execute and that finds our packages; None: there is none."""
    for program in (sys.executable, "/usr/bin/python3"):
        command = [program, "-c", NEEDED]
        try:
            done = subprocess.run(
                command, **_identity(NOBODY_IN_PARTICULAR), env=_env(), capture_output=True, timeout=PATIENCE
            )
        except OSError:
            continue
        if done.returncode == 0:
            return program
    return None
