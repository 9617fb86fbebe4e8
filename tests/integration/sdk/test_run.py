"""`gpumon run` changes nothing for the command: exit code, signals, stdin, arguments, streams."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PATIENCE, wait_for
from tests.integration.sdk.scripts import AUTO, environment, finish, gpumon, start, write
from tests.rings import trainer_rings

RUN = (sys.executable, "-m", "monitor.cli.main", "run")


def run(directory: Path, *words: str, text: str = "", **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, *words],
        env=environment(directory, **extra),
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize("summary", [(), ("--no-summary",)])
def test_stdin_arguments_and_exit_code(gpumon_dir: Path, tmp_path: Path, summary: tuple[str, ...]) -> None:
    script = write(tmp_path, "import sys; print(sys.argv[1:], input()); sys.exit(7)")
    done = run(gpumon_dir, *summary, "--", sys.executable, str(script), "--name", "x y", "--", text="hello\n")
    assert done.returncode == 7
    assert done.stdout == "['--name', 'x y', '--'] hello\n"


def test_killed_child(gpumon_dir: Path) -> None:
    assert run(gpumon_dir, "--", "sh", "-c", "kill -9 $$").returncode == 128 + 9


def test_unknown_command(gpumon_dir: Path, tmp_path: Path) -> None:
    done = run(gpumon_dir, "--", "no-such-command-here")
    assert done.returncode == 127
    assert done.stderr.startswith("gpumon: no such command")
    assert "Traceback" not in done.stderr
    assert run(gpumon_dir).returncode == 2
    plain = tmp_path / "notes.txt"
    plain.write_text("hi")
    assert run(gpumon_dir, "--", str(plain)).returncode == 126


def test_signals_are_handed_on(gpumon_dir: Path, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    script = write(
        tmp_path,
        "import pathlib, signal, sys, time\n"
        "def stop(number, frame): print('got', number, flush=True); sys.exit(5)\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
        "time.sleep(60)\n",
    )
    child = start(script, gpumon_dir, front=(*RUN, "--"))
    wait_for(ready.exists)
    child.send_signal(signal.SIGTERM)
    out, _ = child.communicate(timeout=PATIENCE)
    assert out.strip() == f"got {int(signal.SIGTERM)}"
    assert child.returncode == 5


def test_a_python_without_torch_pays_nothing(gpumon_dir: Path, tmp_path: Path) -> None:
    script = write(tmp_path, "import sys; print('_gpumon_sdk' in sys.modules, 'sdk' in sys.modules)")
    done = finish(script, gpumon_dir, front=gpumon())
    assert done.stdout.split() == ["False", "False"]
    assert not list(gpumon_dir.iterdir())


def test_the_sites_own_sitecustomize_still_runs(gpumon_dir: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import sys; sys.own_site = __name__\n")
    script = write(tmp_path, "import sys, sitecustomize; print(sys.own_site, sitecustomize.__file__)")
    path = os.pathsep.join([str(site), environment(gpumon_dir)["PYTHONPATH"]])
    done = finish(script, gpumon_dir, front=gpumon(), env={"PYTHONPATH": path})
    assert done.stdout.split() == ["sitecustomize", str(site / "sitecustomize.py")], done.stderr


@pytest.mark.slow
def test_module_and_shell_script(gpumon_dir: Path, tmp_path: Path) -> None:
    """`python -m package` from inside a shell script, with the same result as without gpumon."""
    package = tmp_path / "job"
    package.mkdir()
    (package / "__main__.py").write_text(AUTO + "\nmain()\n")
    shell = write(tmp_path, f"{sys.executable} -m job\n", "go.sh")
    plain = finish(shell, gpumon_dir, python="sh")
    watched = finish(shell, gpumon_dir, python="sh", front=gpumon())
    assert plain.stdout == watched.stdout and "result" in plain.stdout
    (found,) = trainer_rings(gpumon_dir)
    assert found.header.head == 16
    assert found.meta["name"] == "job"


@pytest.mark.slow
def test_a_users_own_sdk_package_is_not_hidden(gpumon_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "sdk.py").write_text("WHOSE = 'mine'\n")
    script = write(tmp_path, AUTO + "\nimport sdk; main(); print(sdk.WHOSE)\n")
    done = finish(script, gpumon_dir, front=gpumon(), python=sys.executable)
    assert done.stdout.split()[-1] == "mine", done.stderr
    assert len(trainer_rings(gpumon_dir)) == 1


@pytest.mark.slow
def test_failing_script_is_a_failed_run(gpumon_dir: Path, tmp_path: Path) -> None:
    script = write(tmp_path, AUTO + "\nmain(); raise ValueError('boom')\n")
    done = finish(script, gpumon_dir, front=gpumon(), python=sys.executable)
    assert done.returncode == 1 and "ValueError: boom" in done.stderr
    (found,) = trainer_rings(gpumon_dir)
    assert found.header.state == 2


@pytest.mark.parametrize("streams", ["2>&-", ">&- 2>&-", "<&- >&- 2>&-", "2>/dev/full", "2>/dev/full >&-"])
def test_where_nothing_can_be_said_the_command_still_runs(
    gpumon_dir: Path, tmp_path: Path, streams: str
) -> None:
    """It finds what it would find without us, and its exit code is ours."""
    looks = (
        "import os, pathlib, sys\n"
        "def stream(n):\n"
        "    try: return os.readlink(f'/proc/self/fd/{n}')\n"
        "    except OSError: return 'closed'\n"
        "pathlib.Path(sys.argv[1]).write_text(repr([stream(n) for n in (1, 2)]))\n"
        "sys.exit(7)\n"
    )
    script = write(tmp_path, looks)
    found: list[tuple[int, str]] = []
    for front in ("", " ".join(RUN) + " -- "):
        target = tmp_path / f"found{len(found)}"
        command = f"{front}{sys.executable} {script} {target} {streams}"
        done = subprocess.run(["sh", "-c", command], env=environment(gpumon_dir), timeout=PATIENCE)
        found.append((done.returncode, target.read_text()))
    assert found[0] == found[1]
    assert found[0][0] == 7
