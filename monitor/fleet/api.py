"""Asks Prometheus, or whatever answers as it does (VictoriaMetrics, Thanos, Mimir), over its HTTP query API.

Every failure a user can do something about is a `UserError` that names the address that was tried.
"""

from __future__ import annotations

import base64
import http.client
import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlencode, urlsplit

from monitor.model.errors import EXIT_UNREACHABLE, EXIT_USAGE, UserError

TIMEOUT_SECONDS = 60.0
"""A choice: half of Prometheus's own limit of two minutes for a query."""
PORT = 9090
"""Prometheus's own, for an address without scheme and port."""
FORMS = "use http://HOST:PORT, with the path before /api/v1 if it has one, and USER:PASSWORD@ before the host"
TOO_MUCH = ("too many samples", "maxSamplesPerQuery", "maxUniqueTimeseries", "maxMemoryPerQuery", "timed out")
"""Words of a refusal that a shorter time range cures."""


class Sample(NamedTuple):
    """One series at one moment."""

    labels: Mapping[str, str]
    value: float


class Api:
    """One address. `notes` are what it said about its own answers: warnings, partial results."""

    def __init__(self, url: str, *, timeout: float = TIMEOUT_SECONDS) -> None:
        parts = _parts(url)
        self._tls, self._host = parts.scheme == "https", parts.hostname or ""
        self._port = parts.port or (443 if self._tls else 80 if "://" in url else PORT)
        self._path = parts.path.rstrip("/").removesuffix("/api/v1") + "/api/v1/query"
        self._headers = {"Content-Type": "application/x-www-form-urlencoded"} | _authorization(parts)
        self._timeout = timeout
        self.url = f"{parts.scheme}://{self._host}:{self._port}{self._path.removesuffix('/api/v1/query')}"
        self.notes: dict[str, None] = {}

    def ask(self, expression: str, at: float) -> list[Sample]:
        """What an expression is worth at a moment, one sample a series. Raises `UserError`."""
        # Three digits: a query's time has the resolution of its samples, a millisecond.
        body = self._post({"query": expression, "time": str(round(at, 3))})
        self.notes |= dict.fromkeys(str(one) for one in body.get("warnings") or ())
        if body.get("isPartial"):
            self.notes["the answer is partial: some of its storage nodes do not answer"] = None
        found = body.get("data") or {}
        return [_sample(one) for one in found.get("result", ()) if _told(one)]

    def _post(self, question: Mapping[str, str]) -> dict[str, Any]:
        kind = http.client.HTTPSConnection if self._tls else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=self._timeout)
        try:
            connection.request("POST", self._path, urlencode(question), self._headers)
            response = connection.getresponse()
            return self._checked(response.status, response.read())
        except (http.client.HTTPException, OSError) as error:
            raise self._unreachable(error) from None
        finally:
            connection.close()

    def _checked(self, status: int, body: bytes) -> dict[str, Any]:
        if status in (401, 403):
            raise UserError(f"{self.url} asks for a password", hint=FORMS)
        answer = _json(body)
        if answer is not None and answer.get("status") == "success":
            return answer
        if answer is not None and answer.get("status") == "error":
            raise self._refused(status, str(answer.get("error") or "no reason given"))
        if status >= 500:
            raise UserError(f"{self.url} cannot answer now ({status})", code=EXIT_UNREACHABLE)
        raise UserError(
            f"{self.url} answers, but not as Prometheus does ({status} at /api/v1/query)", hint=FORMS
        )

    def _refused(self, status: int, said: str) -> UserError:
        if any(words in said for words in TOO_MUCH):
            return UserError(
                f"{self.url} refuses so large a question: {said}", hint="ask for less: --since 1h"
            )
        code = EXIT_UNREACHABLE if status >= 500 else EXIT_USAGE
        return UserError(f"{self.url} refuses the question: {said}", code=code)

    def _unreachable(self, error: Exception) -> UserError:
        told = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        return UserError(
            f"no Prometheus answers at {self.url} ({told})",
            hint="check the address; a browser on this machine should show its page there",
            code=EXIT_UNREACHABLE,
        )


def _parts(url: str) -> SplitResult:
    """What a user typed; a bare ``host:port`` is understood too."""
    wrong = UserError(f"{url!r} is not the address of a Prometheus", hint=FORMS)
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        _ = parts.port
    except ValueError:
        raise wrong from None
    bad = not parts.hostname or any(c.isspace() or not c.isprintable() for c in url)
    if parts.scheme not in ("http", "https") or bad:
        raise wrong
    return parts


def _authorization(parts: SplitResult) -> dict[str, str]:
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def _json(body: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(body)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _told(one: Any) -> bool:
    """Not a number (a division of nothing by nothing) is no answer."""
    return math.isfinite(float(one["value"][1]))


def _sample(one: Any) -> Sample:
    return Sample(one["metric"], float(one["value"][1]))
