"""Where snapshots come from: threads in, one queue, hosts that do not answer, history for the graphs."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from monitor.model import facts
from monitor.model.clock import Moment
from monitor.model.errors import UserError
from monitor.model.history import HistoryPage, Series
from monitor.model.settings import Settings
from monitor.model.snapshot import Snapshot, encode
from monitor.tui.feed import Inbox, OwnFeed, Readers, RemoteFeed, hosts_file, past_of, short
from monitor.tui.frame import Hub, Update
from monitor.tui.start import build
from tests.conftest import wait_for
from tests.tui import scenes


class Collected:
    """An inbox that only keeps."""

    def __init__(self) -> None:
        self.woken = 0
        self.inbox = Inbox(self._wake)

    def _wake(self) -> None:
        self.woken += 1


class Daemon(http.server.BaseHTTPRequestHandler):
    """Just enough of the API: a stream of snapshots that ends, and a little history."""

    snapshots: tuple[Snapshot, ...] = ()
    page: HistoryPage | None = None

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        if self.path.startswith("/api/v1/history"):
            self.wfile.write(encode(self.page))
            return
        for snapshot in self.snapshots:
            self.wfile.write(b"data: " + encode(snapshot) + b"\n\n")

    def log_message(self, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def daemon() -> Iterator[str]:
    now = scenes.NOW
    Daemon.snapshots = tuple(scenes.ticks("data-bound")[-3:])
    Daemon.page = HistoryPage(
        now - 600,
        now,
        1.0,
        (
            Series(
                "gpu:GPU-0000",
                "utilization_ratio",
                (now - 6, now - 4, now - 1),
                (0.1, 0.3, 0.5),
                (0.1, 0.3, 0.5),
                (0.1, 0.3, 0.5),
            ),
        ),
    )
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Daemon)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_a_daemon_is_followed_and_its_end_is_told(daemon: str) -> None:
    got = Collected()
    readers = Readers([RemoteFeed(daemon)], got.inbox)
    readers.start()
    wait_for(lambda: got.woken >= 5)
    readers.stop()
    updates = got.inbox.drain()
    assert [u.snapshot.seq for u in updates[:1] if u.snapshot] == [scenes.TICKS - 2]
    past = next(u.past for u in updates if u.past)
    assert [r.use for r in past["GPU-0000"]] == [0.1, 0.1, 0.3, 0.3, None, 0.5]
    assert any(u.error and "ended" in u.error for u in updates)


def test_a_host_that_does_not_answer_says_so_and_is_asked_again() -> None:
    got = Collected()
    readers = Readers([RemoteFeed("http://127.0.0.1:9")], got.inbox)
    readers.start()
    wait_for(lambda: got.woken >= 2)
    readers.stop()
    first = got.inbox.drain()[0]
    assert first.snapshot is None and first.error and "127.0.0.1:9" in first.error


def test_own_readings_end_with_the_feed(tmp_path: Path) -> None:
    got = Collected()
    settings = Settings(source="simulated", gpus=2, dir=(tmp_path,), store=None, interval=0.05)
    before = threading.active_count()
    readers = Readers([OwnFeed(settings, "here")], got.inbox)
    readers.start()
    wait_for(lambda: got.woken >= 2)
    readers.stop()
    snapshot = got.inbox.drain()[0].snapshot
    assert snapshot is not None and len(snapshot.gpus) == 2
    wait_for(lambda: threading.active_count() <= before)


def test_hosts_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# lab\nhttp://lab-07:10835\nbig http://lab-08:9999  # the big one\n\n")
    assert hosts_file(path) == [("http://lab-07:10835", None), ("http://lab-08:9999", "big")]


@pytest.mark.parametrize("text", ["", "# nothing\n", "one two three\n"])
def test_a_bad_hosts_file_is_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "hosts"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        hosts_file(path)
    assert "hosts" in caught.value.sentence and caught.value.hint


def test_a_missing_hosts_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        hosts_file(tmp_path / "absent")


def test_labels_are_short_and_never_the_same() -> None:
    assert short("http://gpu-3:10835") == "gpu-3"
    app = build([("http://127.0.0.1:10835", None), ("http://127.0.0.1:10835", None)], Settings(store=None))
    assert [host.label for host in app.frame.hosts] == ["127.0.0.1 #1", "127.0.0.1 #2"]


def test_an_unknown_theme_names_the_known_ones() -> None:
    with pytest.raises(UserError) as caught:
        build([("http://127.0.0.1:1", None)], Settings(store=None), theme="pink")
    assert caught.value.hint and "gpumon-dark" in caught.value.hint


def test_links_follow_age_and_errors() -> None:
    now = [Moment(0.0, 100.0)]
    hub = Hub([("a", ""), ("b", ""), ("c", "")], lambda: now[0])
    snapshot = scenes.SCENES["no-run"](1)
    hub.take([Update(0, snapshot, None, Moment(0, 100.0)), Update(1, None, "refused", Moment(0, 100.0))])
    assert [host.link for host in hub.frame().hosts] == ["live", "down", "waiting"]
    now[0] = Moment(0.0, 104.0)
    assert hub.frame().hosts[0].link == "stale" and hub.frame().hosts[0].age == 4.0
    slow = facts.complete(msgspec.structs.replace(snapshot, interval_seconds=10.0))
    hub.take([Update(0, slow, None, Moment(0, 90.0))])
    assert hub.frame().hosts[0].link == "live"


def test_history_goes_before_what_was_seen() -> None:
    hub = Hub([("a", "")], lambda: Moment(0, 0))
    hub.take([Update(0, scenes.SCENES["data-bound"](5), None, Moment(0, 0))])
    now = scenes.NOW
    page = HistoryPage(
        now - 10, now, 1.0, (Series("gpu:GPU-0000", "utilization_ratio", (now - 9,), (0.5,), (0.5,), (0.5,)),)
    )
    hub.take([Update(0, None, None, Moment(0, 0), past_of(page))])
    trail = list(hub.frame().hosts[0].trails["GPU-0000"])
    assert len(trail) == 2 and trail[0].use == 0.5


def test_a_paused_app_keeps_a_bounded_backlog() -> None:
    got = Collected()
    snapshot = scenes.SCENES["no-run"](1)
    for _ in range(1300):
        got.inbox.put(0, snapshot)
    assert len(got.inbox.drain()) == 1200
