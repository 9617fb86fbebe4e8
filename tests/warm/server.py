"""Forks a process for every client; see `tests.warm`. It has one thread and nothing of ours imported."""

from __future__ import annotations

import array
import atexit
import builtins
import contextlib
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import marshal
import multiprocessing.process
import os
import runpy
import select
import shutil
import signal
import socket
import sys
import threading
import types
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

BASE = list(sys.path)
HIDDEN = ("torch", "torch._dynamo")
"""Imported anew by every process, for those who wait for that; its own modules know each other already."""


class Asked(NamedTuple):
    """What a client wants to be run."""

    words: list[str]
    environment: dict[str, str]
    folder: str
    unbuffered: bool
    umask: int
    group: int
    session: int


class Loaded(importlib.abc.MetaPathFinder):
    """Finds what is loaded but hidden."""

    def __init__(self) -> None:
        self._modules = {name: sys.modules.pop(name) for name in HIDDEN}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        module = self._modules.get(fullname)
        if module is None:
            return None
        where = list(module.__path__)
        return importlib.util.spec_from_file_location(
            fullname, module.__file__, loader=_Same(module), submodule_search_locations=where
        )


class _Same(importlib.abc.Loader):
    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return self._module

    def exec_module(self, module: types.ModuleType) -> None:
        """It was."""


class Server:
    """`run` returns in every forked process, with what it is to run; in the server it does not return."""

    def __init__(self, path: str) -> None:
        self._folder = os.path.dirname(path)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(64)
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tests end it
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        self._clients: dict[int, socket.socket | None] = {}
        """By process id of the child; None if it was killed, and its child as well."""

    def run(self) -> Asked:
        while True:
            clients = [one for one in self._clients.values() if one is not None]
            waiting: list[int | socket.socket] = [0, self._woken, self._listener, *clients]
            for ready in select.select(waiting, [], [])[0]:
                if ready == 0:
                    shutil.rmtree(self._folder, ignore_errors=True)
                    os._exit(0)
                elif ready is self._listener:
                    if asked := self._start(self._listener.accept()[0]):
                        return asked
                elif ready == self._woken:
                    os.read(self._woken, 4096)
                    self._reap()
                elif not isinstance(ready, int):
                    self._gone(ready)

    def _start(self, client: socket.socket) -> Asked | None:
        asked, streams = _received(client)
        child = os.fork()
        if child == 0:
            self._forget(client)
            _become(asked, streams)
            return asked
        for fd in streams:
            os.close(fd)
        self._clients[child] = client
        _send(client, child)
        return None

    def _reap(self) -> None:
        for child in list(self._clients):
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                client = self._clients.pop(child)
                if client is not None:
                    _send(client, os.waitstatus_to_exitcode(status))
                    client.close()

    def _gone(self, client: socket.socket) -> None:
        """The client was killed: so is what it stands for. It is reaped like any other."""
        for child in [child for child, one in self._clients.items() if one is client]:
            os.kill(child, signal.SIGKILL)
            self._clients[child] = None
            client.close()

    def _forget(self, client: socket.socket) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for one in (self._listener, client, *self._clients.values()):
            if one is not None:
                one.close()
        os.close(self._woken)
        os.close(self._wake)


def _received(client: socket.socket) -> tuple[Asked, array.array[int]]:
    streams = array.array("i")
    head, ancillary, _, _ = client.recvmsg(4, socket.CMSG_SPACE(3 * streams.itemsize))
    for _, _, data in ancillary:
        streams.frombytes(data)
    rest = b""
    while len(rest) < int.from_bytes(head, "little"):
        rest += client.recv(1 << 20)
    return Asked(*marshal.loads(rest)), streams


def _send(client: socket.socket, number: int) -> None:
    try:
        client.sendall(number.to_bytes(4, "little", signed=True))
    except OSError:
        return  # the client is gone; that is noticed where it is waited for


def _become(asked: Asked, streams: Sequence[int]) -> None:
    """Streams, folder, group and environment of the client."""
    for place, fd in enumerate(streams):
        os.dup2(fd, place)
        os.close(fd)
    os.umask(asked.umask)
    os.chdir(asked.folder)
    if asked.session != os.getsid(0):
        os.setsid()
    elif asked.group != os.getpgrp():
        os.setpgid(0, asked.group)
    os.environ.clear()
    os.environ.update(asked.environment)


def prepare(asked: Asked, executable: str) -> None:
    """The interpreter as it is after its start."""
    sys.orig_argv = [executable, *asked.words]
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    if asked.unbuffered or os.environ.get("PYTHONUNBUFFERED"):
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(write_through=True)  # type: ignore[union-attr]
    multiprocessing.process.ORIGINAL_DIR = asked.folder  # type: ignore[attr-defined]
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # from the system, as if it were imported now
    inherited = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    sys.path[:] = [*inherited, *BASE]
    importlib.invalidate_caches()
    sys.meta_path.insert(0, Loaded())
    sys.modules.pop("sitecustomize", None)
    if importlib.util.find_spec("sitecustomize"):
        importlib.import_module("sitecustomize")


def execute(asked: Asked) -> None:
    """What the command line says."""
    what, *arguments = asked.words
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    if what == "-m":
        sys.argv = arguments
        sys.path.insert(0, asked.folder)
        runpy._run_module_as_main(arguments[0])  # type: ignore[attr-defined]
    elif what == "-c":
        sys.argv = ["-c", *arguments[1:]]
        sys.path.insert(0, "")
        exec(compile(arguments[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv = [what, *arguments]
        sys.path.insert(0, os.path.dirname(os.path.realpath(what)))
        main.__file__ = what
        with open(what, "rb") as file:
            code = compile(file.read(), what, "exec")
        exec(code, main.__dict__)


def main() -> None:
    path, executable = sys.argv[1:]
    if "GPUMON_STANDIN_LIBRARY" in os.environ:
        sys.path.append(str(Path(__file__).parents[1] / "device" / "runtime"))
        importlib.import_module("standin.hook").import_torch()
        sys.path.pop()
    importlib.import_module("torch._dynamo")
    assert len(os.listdir("/proc/self/task")) == 1, "threads do not survive a fork"
    server = Server(path)
    gc.collect()
    gc.freeze()
    os.write(1, b"ready\n")
    asked = server.run()
    code = 1
    try:
        prepare(asked, executable)
        execute(asked)
        code = 0
    except SystemExit as wish:
        if isinstance(wish.code, int) or wish.code is None:
            code = wish.code or 0
        else:
            print(wish.code, file=sys.stderr)
    except BaseException as error:  # noqa: BLE001 — as Python does
        _tell(error)
        code = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    end(code)


def _tell(error: BaseException) -> None:
    """As Python does with what nobody has caught; without the frames of this file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def end(code: int) -> None:
    """As Python ends, except that nobody takes torch to pieces: that would copy all of it."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
