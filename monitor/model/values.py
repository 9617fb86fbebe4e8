"""Reading the value of an option: text in, what is meant out, or ValueError("is …")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from monitor.model.paths import typed

DEFAULT_LISTEN = "127.0.0.1:10835"
"""An unclaimed port: Prometheus exporters have taken 9100 to 9999 and 10001 to about 10050."""
SOURCES = ("auto", "nvml", "simulated", "none")
COMPATIBLE = ("dcgm",)
OFF = "none"
"""The value that switches an option off."""
YES, NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")

_SIZES = {"": 1, "b": 1, "k": 1 << 10, "kb": 10**3, "kib": 1 << 10, "m": 1 << 20, "mb": 10**6, "mib": 1 << 20,
          "g": 1 << 30, "gb": 10**9, "gib": 1 << 30, "t": 1 << 40, "tb": 10**12, "tib": 1 << 40}  # fmt: skip
_DURATIONS = {
    "ms": 0.001,
    "": 1.0,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
}


def _quantity(text: str, units: Mapping[str, float], example: str) -> float:
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = text.strip()[len(number) :].lower()
    try:
        value = float(number) * units[unit]
    except (ValueError, KeyError):
        raise ValueError(f"is not of the form {example}") from None
    if not 0 < value < 1e18:
        raise ValueError("must be more than 0")
    return value


def size(text: str) -> int:
    return int(_quantity(text, _SIZES, "500M or 2GiB"))


def duration(text: str) -> float:
    return _quantity(text, _DURATIONS, "1, 500ms or 30d")


def interval(text: str) -> float:
    seconds = duration(text)
    if not 0.05 <= seconds <= 3600:
        raise ValueError("must be between 50ms and 1h")
    return seconds


def source(text: str) -> str:
    if text not in SOURCES:
        raise ValueError(f"must be one of {', '.join(SOURCES)}")
    return text


def compat(text: str) -> str | None:
    if text not in (*COMPATIBLE, OFF):
        raise ValueError(f"must be {' or '.join((*COMPATIBLE, OFF))}")
    return None if text == OFF else text


def text_or_off(text: str) -> str | None:
    return None if text in ("", OFF) else text


def between(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.strip().isdecimal() or not low <= int(text) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(text)

    return read


def path(text: str) -> Path:
    if not text.strip():
        raise ValueError("must not be empty")
    return typed(text)


def path_or_off(text: str) -> Path | None:
    return None if text == OFF else path(text)


def listen(text: str) -> str | None:
    """``HOST:PORT``, ``:PORT`` (every address) or ``none``; IPv6 as ``[::1]:10835``."""
    if text == OFF:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"is not of the form HOST:PORT, like {DEFAULT_LISTEN}")
    return f"{host or '0.0.0.0'}:{port}"


def socket_mode(text: str) -> int:
    modes = {"600": 0o600, "660": 0o660, "666": 0o666}
    try:
        return modes[text.strip().removeprefix("0o").lstrip("0")]
    except KeyError:
        raise ValueError("must be 0600, 0660 or 0666") from None


def names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def switch(text: str) -> bool:
    meant = text.strip().lower()
    if meant not in (*YES, *NO):
        raise ValueError("must be yes or no")
    return meant in YES
