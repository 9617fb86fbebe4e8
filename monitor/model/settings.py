"""Every option of gpumon in one place: as flag, environment variable and TOML key.

A flag beats the environment, the environment beats the file, the file beats the default. An option is one
field of `Settings`: its metadata holds the help text and the parser for its value; the flags, the variable
names, the file's keys and the table in docs/daemon.md are all derived from it.
"""

# ruff: noqa: RUF009 — `_option` makes a dataclass field, it is not a default shared by instances
from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from monitor.model import values
from monitor.model.errors import UserError
from monitor.model.files import read_text
from monitor.model.paths import default_socket, state_directory, typed
from sdk.ring import default_directory

SourceKind = Literal["auto", "nvml", "simulated", "none"]

ENVIRONMENT_PREFIX = "GPUMON_"
CONFIG_VARIABLE = "GPUMON_CONFIG"
STORE_NAME = "history.db"


# ── The options ──────────────────────────────────────────────────────────────────────────────────


def _option(
    default: Any, read: Callable[[str], Any], text: str, *, shown: str | None = None, many: bool = False
) -> Any:
    metadata = {"read": read, "help": text, "shown": shown, "many": many}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The configuration of the daemon, and of every command that reads without one."""

    source: SourceKind = _option(
        "auto",
        values.source,
        "where GPU readings come from: auto (NVML, else the host alone), nvml, simulated, none",
    )
    gpus: int = _option(1, values.between(1, 256), "how many GPUs the simulated source has")
    scenario: Path | None = _option(
        None, values.path, "file that steers the simulated source (heat, throttle, loss …)"
    )
    interval: float = _option(1.0, values.interval, "seconds between two snapshots", shown="1s")
    dir: tuple[Path, ...] = _option(
        lambda: (Path(default_directory()),),
        values.path,
        "directory that training runs write their rings to; may be given several times",
        shown="/dev/shm/gpumon, else one of the user's own",
        many=True,
    )
    listen: str | None = _option(
        values.DEFAULT_LISTEN, values.listen, "TCP address to serve on; none: no TCP"
    )
    socket: Path | None = _option(
        lambda: default_socket(Path(default_directory())),
        values.path_or_off,
        "Unix socket to serve on; none: no socket",
        shown="in the runtime directory, named by the ring directory",
    )
    socket_mode: int = _option(
        0o600,
        values.socket_mode,
        "who may connect to it: 0600 its user, 0660 its group too, 0666 every user of the machine",
        shown="0600",
    )
    web_config: Path | None = _option(
        None,
        values.path,
        "TLS and basic auth for TCP, in the format of the Prometheus exporters' web-config file",
    )
    allow_host: tuple[str, ...] = _option(
        (),
        values.names,
        "further host names clients may use (names of this machine and IP addresses always work)",
        many=True,
    )
    show_commands: bool = _option(
        False, values.switch, "show all users' commands and source lines to everyone with access"
    )
    insecure: bool = _option(
        False, values.switch, "do not warn about an address that others can reach without password or TLS"
    )
    pod_resources: Path | None = _option(
        Path("/var/lib/kubelet/pod-resources/kubelet.sock"),
        values.path_or_off,
        "the kubelet's socket, which lists the pods that hold GPUs; none: do not ask it",
    )
    gpu_jobs: Path | None = _option(
        Path("/run/gpumon-jobs"),
        values.path_or_off,
        "folder of files that name the Slurm jobs of each GPU (see many-machines.md); none: do not read it",
    )
    store: Path | None = _option(
        lambda: state_directory() / STORE_NAME,
        values.path_or_off,
        "history database; none: keep no history",
        shown=f"{STORE_NAME} in the state directory",
    )
    store_max_size: int = _option(
        1 << 30, values.size, "drop the oldest history above this size", shown="1GiB"
    )
    store_max_age: float = _option(30 * 86400.0, values.duration, "drop history older than this", shown="30d")
    keep_ended: float = _option(
        600.0,
        values.duration,
        "how long a finished run stays visible; after that it is only in the history",
        shown="10min",
    )
    policy: Path | None = _option(None, values.path, "TOML file with thresholds of the advice rules")
    compat: str | None = _option(
        None,
        values.compat,
        "also serve another exporter's names and labels in /metrics, for its dashboards: dcgm",
    )
    otlp: str | None = _option(
        None, values.text_or_off, "also push metrics over OTLP/HTTP, to http://HOST:4318 or a full URL"
    )
    otlp_interval: float = _option(15.0, values.interval, "how often to push", shown="15s")
    per_link: bool = _option(False, values.switch, "show every NVLink link by itself in /metrics")
    max_runs: int = _option(
        64, values.between(1, 10_000), "maximum number of runs in /metrics; the rest are only counted"
    )
    max_ranks: int = _option(
        1024, values.between(1, 100_000), "maximum number of ranks in /metrics; the rest are only counted"
    )
    max_processes: int = _option(
        16, values.between(0, 1024), "processes listed individually per GPU in /metrics; the rest are summed"
    )
    max_scalars: int = _option(
        32,
        values.between(0, 128),
        "maximum number of scalars per rank in /metrics; the rest are only counted",
    )


def options() -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(Settings)


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    return ENVIRONMENT_PREFIX + name.upper()


# ── Putting them together ────────────────────────────────────────────────────────────────────────


def add_options(parser: argparse.ArgumentParser, names: Iterable[str] | None = None) -> None:
    """Add the flags (all, or those named) and ``--config`` to a command."""
    wanted = None if names is None else set(names)
    parser.add_argument(
        "--config", metavar="FILE", help=f"TOML file with these options (also {CONFIG_VARIABLE})"
    )
    for option in options():
        if wanted is not None and option.name not in wanted:
            continue
        default = _default_shown(option)
        parser.add_argument(
            flag(option.name),
            dest=f"option_{option.name}",
            help=f"{option.metadata['help']}{f' (default: {default})' if default else ''}",
            **_kind(option),
        )


def load(args: argparse.Namespace | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """Settings from flags, environment and file. Raises `UserError` saying what is wrong and where."""
    given: dict[str, Any] = {}
    given |= _from_file(getattr(args, "config", None), environ)
    for option in options():
        text = environ.get(variable(option.name))
        if text is not None:
            given[option.name] = _read(option, text, variable(option.name))
        value = getattr(args, f"option_{option.name}", None)
        if value is not None:
            given[option.name] = _read(option, value, flag(option.name))
    if given.get("dir") == ():
        raise UserError("dir: at least one directory is needed")
    _without_effect(args, given)
    if "dir" in given and "socket" not in given:
        given["socket"] = default_socket(given["dir"][0], environ)
    return _consistent(Settings(**given))


def _without_effect(args: argparse.Namespace | None, given: Mapping[str, Any]) -> None:
    """A flag without effect is a mistake; a variable or a file may be meant for other commands."""
    if getattr(args, "option_gpus", None) is not None and given.get("source") != "simulated":
        raise UserError("--gpus applies only to simulated GPUs", hint="add --source simulated")


def _consistent(settings: Settings) -> Settings:
    if settings.scenario and settings.source != "simulated":
        raise UserError("a scenario only steers the simulated source", hint="add --source simulated")
    return settings


def _read(option: dataclasses.Field[Any], value: str | list[str], where: str) -> Any:
    """One value (or a list, for options that may be given several times) in its own type."""
    texts = value if isinstance(value, list) else [value]
    try:
        read = [option.metadata["read"](text) for text in texts]
    except ValueError as error:
        raise UserError(f"{where}: {str(value)!r} {error}") from None
    if not option.metadata["many"]:
        return read[-1]
    flat: list[Any] = []
    for item in read:
        flat.extend(item if isinstance(item, tuple) else (item,))
    return tuple(flat)


def _from_file(chosen: str | None, environ: Mapping[str, str]) -> dict[str, Any]:
    path = config_path(chosen, environ)
    if path is None:
        return {}
    import tomllib  # not at the top: most users have no such file

    try:
        table = tomllib.loads(read_text(path))
    except OSError as error:
        raise UserError(f"cannot read the config file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not TOML: {error}") from None
    known = {option.name: option for option in options()}
    return {key: _file_value(known, key, value, path) for key, value in table.items()}


def _file_value(known: Mapping[str, dataclasses.Field[Any]], key: str, value: Any, path: Path) -> Any:
    name = key.replace("-", "_")
    if key not in known:
        from difflib import get_close_matches  # only after a mistake

        near = get_close_matches(name, known, n=1)
        raise UserError(
            f"{path}: unknown key {key!r}" + (f", did you mean {near[0]!r}?" if near else ""),
            hint=f"keys are: {', '.join(known)}",
        )
    option = known[key]
    if isinstance(value, list) and option.metadata["many"]:
        texts = cast("list[str]", [str(item) for item in value])
        return _read(option, texts, f"{path}: {key}")
    if isinstance(value, bool) != _is_switch(option) or not isinstance(value, str | int | float):
        raise UserError(f"{path}: {key}: {value!r} is not a value this option takes")
    return _read(option, str(value), f"{path}: {key}")


def config_path(chosen: str | None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The file named, else the user's, else the machine's; None when there is none."""
    named = chosen or environ.get(CONFIG_VARIABLE)
    if named:
        return typed(named)
    base = environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    for path in (Path(base) / "gpumon" / "config.toml", Path("/etc/gpumon/config.toml")):
        if path.is_file():
            return path
    return None


def _default_shown(option: dataclasses.Field[Any]) -> str | None:
    if option.metadata["shown"]:
        return str(option.metadata["shown"])
    return None if option.default in (None, (), False) else str(option.default)


def _kind(option: dataclasses.Field[Any]) -> dict[str, Any]:
    """A flag with a value, or a switch, which takes none."""
    if _is_switch(option):
        return {"action": "store_const", "const": "yes"}
    action = "append" if option.metadata["many"] else "store"
    return {"action": action, "metavar": _metavar(option.name)}


def _is_switch(option: dataclasses.Field[Any]) -> bool:
    return option.metadata["read"] is values.switch


def _metavar(name: str) -> str:
    kinds = {"source": "KIND", "gpus": "N", "interval": "TIME", "dir": "DIR", "listen": "HOST:PORT"}
    more = {"store_max_size": "SIZE", "store_max_age": "TIME", "allow_host": "NAME", "socket_mode": "MODE"}
    more |= {"keep_ended": "TIME", "gpu_jobs": "DIR", "compat": "NAME"}
    return kinds.get(name) or more.get(name) or ("N" if name.startswith("max_") else "FILE")


def table() -> str:
    """The options as a Markdown table, for docs/daemon.md."""
    rows = ["| flag | environment | TOML key | default | meaning |", "|---|---|---|---|---|"]
    rows += [
        f"| `{flag(option.name)}` | `{variable(option.name)}` | `{option.name}` "
        f"| {_default_shown(option) or '—'} | {option.metadata['help'].replace('|', '/')} |"
        for option in options()
    ]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(table(), end="")
