"""What is said when the address, the answer or the connection is wrong: one sentence, and the exit code."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest

from monitor.fleet.api import Api
from monitor.fleet.fleet import Fleet
from monitor.model.errors import EXIT_UNREACHABLE, EXIT_USAGE, UserError


@contextmanager
def server(status: int, body: bytes | dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Answers every question alike; gives its address and what it was asked."""
    asked: list[dict[str, Any]] = []
    said = body if isinstance(body, bytes) else json.dumps(body).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked.append({"path": self.path, "headers": dict(self.headers), **parse_qs(text)})
            self.send_response(status)
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}", asked
        made.shutdown()
        thread.join()


def answer(*results: tuple[dict[str, str], str], **more: Any) -> dict[str, Any]:
    found = [{"metric": labels, "value": [0, value]} for labels, value in results]
    return {"status": "success", "data": {"resultType": "vector", "result": found}, **more}


def refused(status: int, body: bytes | dict[str, Any]) -> UserError:
    with server(status, body) as (url, _), pytest.raises(UserError) as caught:
        Api(url).ask("up", 0)
    return caught.value


def test_samples_come_with_labels_and_numbers_only() -> None:
    with server(200, answer(({"run": "a"}, "1.5"), ({"run": "b"}, "NaN"))) as (url, asked):
        assert [(one.labels, one.value) for one in Api(url).ask("x", 12.3456)] == [({"run": "a"}, 1.5)]
    assert asked[0]["query"] == ["x"] and asked[0]["time"] == ["12.346"]


def test_a_path_and_a_password_are_kept() -> None:
    with server(200, answer()) as (url, asked):
        named = Api(url.replace("http://", "http://ada:p%40ss@") + "/select/0/prometheus/api/v1/")
        named.ask("x", 0)
    assert asked[0]["path"] == "/select/0/prometheus/api/v1/query"
    assert asked[0]["headers"]["Authorization"] == "Basic YWRhOnBAc3M="
    assert "p@ss" not in named.url and "ada" not in named.url


def test_an_address_without_scheme_and_port_means_prometheus_own() -> None:
    assert Api("metrics").url == "http://metrics:9090"
    assert Api("https://metrics").url == "https://metrics:443"


@pytest.mark.parametrize("url", ["", "ftp://x", "http://", "http://a b", "http://x:port", "://", "http://[x"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(UserError, match="is not the address of a Prometheus") as caught:
        Api(url)
    assert caught.value.code == EXIT_USAGE


@pytest.mark.parametrize(
    ("status", "body", "said", "code"),
    [
        (404, b"not found", "answers, but not as Prometheus does (404", EXIT_USAGE),
        (200, b"<html>", "answers, but not as Prometheus does (200", EXIT_USAGE),
        (200, b"[]", "answers, but not as Prometheus does (200", EXIT_USAGE),
        (401, b"", "asks for a password", EXIT_USAGE),
        (503, b"starting", "cannot answer now (503)", EXIT_UNREACHABLE),
        (503, {"status": "error", "error": "query timed out"}, "refuses so large a question", EXIT_USAGE),
        (422, {"status": "error", "error": "would load too many samples"}, "so large a question", EXIT_USAGE),
        (400, {"status": "error", "error": "parse error"}, "refuses the question: parse error", EXIT_USAGE),
    ],
)
def test_answers_that_are_none(status: int, body: bytes | dict[str, Any], said: str, code: int) -> None:
    error = refused(status, body)
    assert said in error.sentence and error.code == code


def test_nobody_answers() -> None:
    with server(200, answer()) as (url, _):
        pass
    with pytest.raises(UserError, match="no Prometheus answers at") as caught:
        Api(url).ask("up", 0)
    assert caught.value.code == EXIT_UNREACHABLE


def test_partial_answers_and_warnings_are_told() -> None:
    with server(200, answer(isPartial=True, warnings=["a store is down"])) as (url, _):
        api = Api(url)
        api.ask("up", 0)
    assert list(api.notes) == [
        "a store is down",
        "the answer is partial: some of its storage nodes do not answer",
    ]


def test_a_prometheus_without_gpumon_says_so() -> None:
    with (
        server(200, answer()) as (url, _),
        pytest.raises(UserError, match="scrapes no gpumon daemon") as caught,
    ):
        Fleet(url).records()
    assert caught.value.code == EXIT_USAGE and "many-machines.md" in (caught.value.hint or "")
