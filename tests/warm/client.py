# `python()` puts a shebang and some names before this: REAL, SOCKET, KEPT, READ_AT_START, READ_LATER.
"""Has the server run what a Python is asked to run, and ends as that ended; imports next to nothing."""

import _signal
import _socket
import marshal
import os
import sys

FORWARDED = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT, _signal.SIGUSR1, _signal.SIGUSR2)


def is_possible(words, environment):
    """Whether a fork can do it: a script, `-m`, `-c` or `-u` before these, and nothing to be read at start."""
    if not words or (words[0].startswith("-") and words[0] not in ("-m", "-c")):
        return False
    found = {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}
    return {name: value for name, value in found.items() if name not in READ_LATER} == KEPT


def received(connection):
    """A number, or None if the server is gone."""
    data = b""
    while len(data) < 4:
        more = connection.recv(4 - len(data))
        if not more:
            return None
        data += more
    return int.from_bytes(data, "little", signed=True)


def main():
    environment, words = dict(os.environ), sys.argv[1:]
    unbuffered = words[:1] == ["-u"]
    words = words[unbuffered:]
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        if not is_possible(words, environment):
            raise OSError
        connection.connect(SOCKET)
    except OSError:
        os.execv(REAL, [REAL, *sys.argv[1:]])
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    asked = marshal.dumps((words, environment, os.getcwd(), unbuffered, os.umask(0o077), os.getpgrp(), os.getsid(0)))
    streams = b"".join(fd.to_bytes(4, sys.byteorder) for fd in range(3))
    connection.sendmsg(
        [len(asked).to_bytes(4, "little")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)]
    )
    connection.sendall(asked)
    child = received(connection)
    for number in FORWARDED:
        _signal.signal(number, lambda number, frame: os.kill(child, number))
    code = received(connection)
    if code is None:
        sys.exit("the server of warm Pythons has ended")
    if code < 0:
        _signal.signal(-code, _signal.SIG_DFL) if -code not in (_signal.SIGKILL, _signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(code)


main()
