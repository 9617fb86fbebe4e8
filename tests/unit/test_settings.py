"""Every option three ways, and errors that name the wrong one."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from monitor.model import settings
from monitor.model.errors import UserError


def parse(*flags: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    settings.add_options(parser)
    return parser.parse_args(list(flags))


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


EVERY = {
    "source": ("none", "none"),
    "gpus": ("3", 3),
    "scenario": ("/s.toml", Path("/s.toml")),
    "interval": ("500ms", 0.5),
    "dir": ("/rings", (Path("/rings"),)),
    "listen": (":9000", "0.0.0.0:9000"),
    "socket": ("none", None),
    "socket_mode": ("0660", 0o660),
    "web_config": ("/w.yml", Path("/w.yml")),
    "allow_host": ("a,b", ("a", "b")),
    "show_commands": ("yes", True),
    "insecure": ("yes", True),
    "pod_resources": ("/k.sock", Path("/k.sock")),
    "gpu_jobs": ("none", None),
    "store": ("/h.db", Path("/h.db")),
    "store_max_size": ("2GiB", 2 << 30),
    "store_max_age": ("7d", 7 * 86400.0),
    "keep_ended": ("30s", 30.0),
    "policy": ("/p.toml", Path("/p.toml")),
    "compat": ("dcgm", "dcgm"),
    "otlp": ("http://collector:4318", "http://collector:4318"),
    "otlp_interval": ("30s", 30.0),
    "per_link": ("yes", True),
    "max_runs": ("5", 5),
    "max_ranks": ("6", 6),
    "max_processes": ("8", 8),
    "max_scalars": ("7", 7),
}


def test_the_table_above_is_complete() -> None:
    assert list(EVERY) == [option.name for option in settings.options()]


@pytest.mark.parametrize("name", EVERY)
def test_every_option_as_flag_variable_and_key(name: str, tmp_path: Path) -> None:
    text, value = EVERY[name]
    extra = {"GPUMON_SOURCE": "simulated"} if name in ("scenario", "gpus") else {}
    switch = value is True
    config = write(tmp_path, f"{name} = true\n" if switch else f'{name} = "{text}"\n')
    by_flag = settings.load(parse(settings.flag(name), *([] if switch else [text])), extra)
    by_variable = settings.load(parse(), {settings.variable(name): text, **extra})
    by_file = settings.load(parse("--config", config), extra)
    assert [getattr(found, name) for found in (by_flag, by_variable, by_file)] == [value] * 3


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    config = write(tmp_path, "interval = 3\ngpus = 3\nmax_runs = 3\n")
    environment = {"GPUMON_INTERVAL": "2", "GPUMON_GPUS": "2", "GPUMON_CONFIG": config}
    found = settings.load(parse("--interval", "1.5"), environment)
    assert (found.interval, found.gpus, found.max_runs, found.max_ranks) == (1.5, 2, 3, 1024)


def test_lists_in_the_file_and_repeated_flags(tmp_path: Path) -> None:
    config = write(tmp_path, 'dir = ["/a", "/b"]\n')
    assert settings.load(parse("--config", config), {}).dir == (Path("/a"), Path("/b"))
    found = settings.load(parse("--dir", "/c", "--dir", "/d"), {})
    assert found.dir == (Path("/c"), Path("/d"))
    same = settings.load(None, {"GPUMON_DIR": "/c"})
    assert found.socket == same.socket, "a client with the same directory finds the socket"
    assert found.socket != settings.load(None, {"GPUMON_DIR": "/d"}).socket


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("intervall = 1\n", "unknown key 'intervall', did you mean 'interval'?"),
        ("[tables]\n", "unknown key 'tables'"),
        ("interval = true\n", "interval: True is not a value"),
        ("insecure = 'yes'\n", "insecure: 'yes' is not a value"),
        ("interval = 'soon'\n", "interval: 'soon' is not of the form"),
        ("interval = 0.001\n", "must be between 50ms and 1h"),
        ("gpus = 0\n", "must be a whole number from 1"),
        ("listen = 'host:99999'\n", "is not of the form HOST:PORT"),
        ("store_max_size = '-1G'\n", "must be more than 0"),
        ("interval = \n", "is not TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        settings.load(parse("--config", write(tmp_path, text)), {})
    assert said in caught.value.sentence


def test_the_users_file_is_found_by_itself(tmp_path: Path) -> None:
    home = tmp_path / "gpumon"
    home.mkdir()
    (home / "config.toml").write_text("gpus = 4\n", encoding="utf-8")
    assert settings.load(parse(), {"XDG_CONFIG_HOME": str(tmp_path)}).gpus == 4
