"""Places are limited, and one client cannot have them all."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from monitor.web.client_limits import InFlight, Streams
from monitor.web.peer import Peer


class Known(Peer):
    def __init__(self, name: str) -> None:
        super().__init__(None)
        self.__dict__["client"] = name


async def ask(app: InFlight, name: str, answers: Counter[tuple[str, int]]) -> None:
    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answers[name, message["status"]] += 1

    scope = {"type": "http", "method": "GET", "headers": [], "state": {"peer": Known(name)}}
    await app(scope, None, send)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [b"application/json", b"text/event-stream"])
def test_requests_in_flight_are_limited_overall_and_for_each_client(kind: bytes) -> None:
    answers: Counter[tuple[str, int]] = Counter()

    async def crowd() -> None:
        hold = asyncio.Event()

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            if kind == b"text/event-stream":
                start = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]}
                await send(start)
                await hold.wait()
                return
            await hold.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})

        app = InFlight(slow, most=40, each=20)
        asked = [asyncio.create_task(ask(app, name, answers)) for name in "a" * 30 + "b" * 15 + "c" * 15]
        await asyncio.sleep(0)
        hold.set()
        await asyncio.gather(*asked)
        await ask(app, "a", answers)

    asyncio.run(crowd())
    if kind == b"text/event-stream":
        assert answers == {("a", 200): 31, ("b", 200): 15, ("c", 200): 15}, "a stream that has begun is none"
    else:
        assert answers == {("a", 200): 21, ("a", 503): 10, ("b", 200): 15, ("c", 200): 5, ("c", 503): 10}


def test_who_has_most_streams_gives_one_to_who_has_none() -> None:
    streams = Streams(most=8, each=6)
    of_a = [streams.begin("a") for _ in range(6)]
    assert streams.begin("a") is None, "nobody has more than a share"
    of_b = [streams.begin("b") for _ in range(2)]
    newcomer = streams.begin("c")
    assert newcomer is not None and len(streams) == 8
    assert [one.ended for one in of_a if one] == [True, *[False] * 5]
    assert not any(one.ended for one in of_b if one)
    streams.end(newcomer)
    assert len(streams) == 7
