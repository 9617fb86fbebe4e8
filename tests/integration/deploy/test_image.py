"""The image of deploy/Dockerfile, actually built, if there is a builder; its base comes from a registry."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TAG = "gpumon:under-test"


def docker(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *words], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("docker") is None or docker("info").returncode != 0, reason="no Docker daemon answers"
)
def test_the_image_is_built_and_runs_as_nobody_in_particular() -> None:
    if docker("pull", "python:3.12-slim").returncode != 0:
        pytest.skip("the base image cannot be had here")
    built = docker("build", "-f", "deploy/Dockerfile", "-t", TAG, ".")
    assert built.returncode == 0, built.stderr
    who = docker("run", "--rm", "--read-only", "--cap-drop=ALL", "--entrypoint", "id", TAG, "-u")
    assert who.stdout.strip() == "10835"
    assert docker("run", "--rm", "--read-only", "--cap-drop=ALL", TAG, "version").returncode == 0
