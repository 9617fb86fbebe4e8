"""Has the server run what a Python is asked to run, and ends as that ended; imports next to nothing.

`tests.warm` puts a copy of it, called python, beside a file with what it has to know.
"""

import _socket
import marshal
import os
import signal
import sys

FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


def main() -> None:
    with open(os.path.join(os.path.dirname(sys.argv[0]), "known"), "rb") as file:
        real, path, kept, at_start, later = marshal.load(file)
    environment = dict(os.environ)
    read = {name: value for name, value in environment.items() if name.startswith(at_start)}
    unbuffered = sys.argv[1:2] == ["-u"]
    words = sys.argv[1 + unbuffered :]
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        if not is_possible(words) or {name: read[name] for name in read if name not in later} != kept:
            raise OSError
        connection.connect(path)
    except OSError:
        os.execv(real, [real, *sys.argv[1:]])
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    process = (os.getcwd(), unbuffered, os.umask(0o077), os.getpgrp(), os.getsid(0))
    send(connection, marshal.dumps((words, environment, *process)))
    child = received(connection)
    for number in FORWARDED:
        signal.signal(number, lambda number, frame: os.kill(child, number))
    end(received(connection))


def is_possible(words: list[str]) -> bool:
    """Whether it is a script, `-m` or `-c`; other options are the real Python's."""
    return bool(words) and (words[0] in ("-m", "-c") or not words[0].startswith("-"))


def send(connection: _socket.socket, asked: bytes) -> None:
    streams = b"".join(fd.to_bytes(4, sys.byteorder) for fd in range(3))
    size = len(asked).to_bytes(4, "little")
    connection.sendmsg([size], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    connection.sendall(asked)


def received(connection: _socket.socket) -> int:
    data = b""
    while len(data) < 4:
        more = connection.recv(4 - len(data))
        if not more:
            sys.exit("the server of warm Pythons has ended")
        data += more
    return int.from_bytes(data, "little", signed=True)


def end(code: int) -> None:
    """As the process ended; a negative code is a signal."""
    if code < 0:
        if code != -signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


main()
