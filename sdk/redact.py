"""Removes secrets from command lines before anyone else can read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .patterns import later

HIDDEN = "***"

_SECRET_WORDS = frozenset(
    ("accesstoken", "apikey", "auth", "authorization", "authtoken", "bearer", "credential", "credentials",
     "key", "pass", "passphrase", "passwd", "password", "pat", "pwd", "secret", "token")
)  # fmt: skip
"""Parts of an option's or variable's name that make its value a secret. Only whole parts count:
`--max-tokens`, `--tokenizer` and `--monkey` have none."""
_NAME = later(r"[-+~]{0,2}[A-Za-z][\w.:/-]*")
_PARTS = later(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
"""The same for `api_key`, `api-key`, `apiKey` and `API_KEY`."""
_LOGIN_IN_URL = later(r"""(?<=://)[^/?#\s"']+(?=@)""")
"""Up to the last @: a password may contain one."""
_SECRET_IN_URL = later(
    r"([?&](?:[\w.-]*[_.-])?(?:key|token|secret|password|signature|sig|auth)=)[^&#\s]+", re.IGNORECASE
)
_TOKEN = later(
    r"\b(?:hf_|sk-|pk-|rk_|gh[opsur]_|github_pat_|glpat-|xox[abpr]-|AKIA|ASIA|ya29\.|npm_|pypi-|dckr_pat_)"
    r"[\w-]{10,}|\beyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]+)?"
)
"""Tokens recognizable by their prefix: of model hubs, code forges, clouds, and web tokens."""
_IN_QUOTES = later(r"""([A-Za-z_][\w.-]*)(["']?\s*[=:]\s*)(["'])([^"']+)\3""")
"""`token="…"` in code, `"token": "…"` in JSON."""
_BEARER = later(r"((?:authorization\s*:\s*)?(?:bearer|basic)\s+)\S+", re.IGNORECASE)


def redact(words: Sequence[str]) -> list[str]:
    """The words of a command line, each secret replaced by ``***``: values of options and variables whose
    name says so, logins in URLs, and tokens recognizable by their shape."""
    found: list[str] = []
    for at, word in enumerate(words):
        before = words[at - 1] if at else ""
        found.append(HIDDEN if _is_value_of(before, word) else _redact_word(word))
    return found


def redact_text(text: str) -> str:
    """The same for a command line joined with spaces."""
    return " ".join(redact(text.split(" ")))


def _is_value_of(option: str, word: str) -> bool:
    """`--wandb-key abc`: the word after an option that takes a secret, unless it is itself an option."""
    is_option = option.startswith("-") and "=" not in option
    return is_option and not word.startswith("-") and _names_secret(option)


def _redact_word(word: str) -> str:
    """A value may be another name with its value: `--set=token=…`."""
    parts = word.split("=")
    for at, name in enumerate(parts[:-1], start=1):
        if not _NAME.fullmatch(name):
            break
        if _names_secret(name) and any(parts[at:]):
            return "=".join((*parts[:at], HIDDEN))
    return redact_source(word)


def redact_source(text: str) -> str:
    """A line of code or JSON with each secret replaced."""
    word = _IN_QUOTES.sub(_hide_value, text)
    word = _LOGIN_IN_URL.sub(HIDDEN, word)
    word = _SECRET_IN_URL.sub(rf"\1{HIDDEN}", word)
    word = _BEARER.sub(rf"\1{HIDDEN}", word)
    return _TOKEN.sub(HIDDEN, word)


def redact_lines(found: Any) -> Any:
    """The same for every text in lists and mappings: findings about source lines."""
    if isinstance(found, str):
        return redact_source(found)
    if isinstance(found, dict):
        return {key: redact_lines(value) for key, value in found.items()}
    return [redact_lines(one) for one in found] if isinstance(found, list) else found


def _hide_value(found: re.Match[str]) -> str:
    name, between, quote, _ = found.groups()
    return f"{name}{between}{quote}{HIDDEN}{quote}" if _names_secret(name) else found.group()


def _names_secret(name: str) -> bool:
    if not _NAME.fullmatch(name):
        return False
    return any(part.lower() in _SECRET_WORDS for part in _PARTS.findall(name))
