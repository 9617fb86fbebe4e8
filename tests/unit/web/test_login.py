"""Basic auth under attack: its cost is bounded, and its timing reveals nothing."""

from __future__ import annotations

import asyncio
import base64
import statistics
import time
from collections import Counter, OrderedDict
from typing import Any

import bcrypt
import pytest

from monitor.web import login
from monitor.web.login import FAILURES, MAX_WAITING, REMEMBERED, BasicAuth, Failures, Passwords, remember

CHEAP, COSTLY = 4, 9


def hashed(password: bytes, cost: int) -> bytes:
    return bcrypt.hashpw(password, bcrypt.gensalt(cost))


def header(user: str, password: str) -> tuple[bytes, bytes]:
    return b"authorization", b"Basic " + base64.b64encode(f"{user}:{password}".encode())


async def application(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


async def ask(auth: BasicAuth, *headers: tuple[bytes, bytes]) -> int:
    statuses: list[int] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await auth({"type": "http", "method": "GET", "headers": headers}, None, send)  # type: ignore[arg-type]
    return statuses[0]


def seconds_of(passwords: Passwords, user: str) -> float:
    times = []
    for _ in range(7):
        begin = time.thread_time()  # CPU time, which other load on the machine does not affect
        assert not passwords.fit(user, b"wrong")
        times.append(time.thread_time() - begin)
    return statistics.median(times)


def test_names_cannot_be_told_apart_by_time() -> None:
    """Costs 4 and 9 differ by a factor of 32; the checks may not differ by 4."""
    passwords = Passwords({"cheap": hashed(b"a", CHEAP), "costly": hashed(b"b", COSTLY)})
    times = [seconds_of(passwords, user) for user in ("cheap", "costly", "nobody")]
    assert max(times) / min(times) < 4, times
    assert passwords.fit("cheap", b"a") and passwords.fit("costly", b"b")


def test_a_wrong_password_costs_bcrypt_once_and_few_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN a crowd of wrong logins at once THEN only a few are checked; the others are told to wait."""
    checks: list[str] = []
    real = Passwords.fit

    def counting(self: Passwords, user: str, password: bytes) -> bool:
        checks.append(user)
        return real(self, user, password)

    monkeypatch.setattr(Passwords, "fit", counting)

    async def attack() -> tuple[Counter[int], list[int]]:
        auth = BasicAuth(application, {"ada": hashed(b"secret", CHEAP)})
        asked = [ask(auth, header("ada", f"wrong {at}")) for at in range(50)]
        first = Counter(await asyncio.gather(*asked))
        again = [await ask(auth, header("ada", "wrong 0")) for _ in range(20)]
        return first, again

    answers, again = asyncio.run(attack())
    assert answers[401] <= MAX_WAITING < FAILURES and set(answers) == {401, 503}
    assert set(again) == {401} and len(checks) == answers[401], "a known wrong one is not checked again"


def test_a_client_with_many_failures_waits_and_a_known_login_does_not() -> None:
    async def attack() -> list[int]:
        auth = BasicAuth(application, {"ada": hashed(b"secret", CHEAP), "bob": hashed(b"other", CHEAP)})
        right = [await ask(auth, header("ada", "secret"))]
        wrong = [await ask(auth, header("ada", f"wrong {at}")) for at in range(FAILURES + 5)]
        known, new = await ask(auth, header("ada", "secret")), await ask(auth, header("bob", "other"))
        return [*right, *wrong, known, new]

    answers = asyncio.run(attack())
    assert answers == [200, *[401] * FAILURES, *[429] * 5, 200, 429]


def test_without_or_with_garbage_credentials_nothing_is_checked() -> None:
    async def attack() -> list[int]:
        auth = BasicAuth(application, {"ada": hashed(b"secret", CHEAP)})
        given = [b"", b"Basic", b"Basic !!!", b"Bearer x", b"Basic " + base64.b64encode(b"\xff:x")]
        return [await ask(auth, (b"authorization", one)) for one in given * 10]

    assert set(asyncio.run(attack())) == {401}


def test_failures_drain_with_time() -> None:
    failures = Failures()
    for _ in range(FAILURES):
        assert failures.wait("a", 0.0) == 0.0
        failures.note("a", 0.0)
    assert failures.wait("a", 0.0) > 0.0 and failures.wait("b", 0.0) == 0.0
    assert failures.wait("a", login.FAILURES_SECONDS) == 0.0


def test_what_is_remembered_is_bounded_and_right_logins_stay() -> None:
    known: OrderedDict[bytes, bool] = OrderedDict()
    remember(known, b"right", True)
    for at in range(3 * REMEMBERED):
        remember(known, b"%d" % at, False)
    assert len(known) == REMEMBERED and known[b"right"]
    failures = Failures()
    for at in range(3 * REMEMBERED):
        failures.note(str(at), 0.0)
    assert len(failures._level) == REMEMBERED
