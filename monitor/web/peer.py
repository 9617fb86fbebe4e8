"""Who is asking: the user at the other end of a connection if the kernel knows, otherwise the address.

The kernel knows the user behind a Unix socket, and behind a TCP connection from this machine. For any other
connection the address is all there is.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from functools import cached_property
from typing import TYPE_CHECKING, Any

from monitor.model.owner import own_uid
from monitor.web.loopback import tcp_user

if TYPE_CHECKING:
    from starlette.types import Scope

UNMAPPED_UID = 65534
"""What the kernel shows for a user it cannot map here: two of them need not be the same user."""
NETWORK_BITS = 64
"""One IPv6 customer has at least a network of this size: its addresses count as one client."""


class Peer:
    """The other end of one connection. `uid` is looked up on first use."""

    def __init__(self, sock: socket.socket | None) -> None:
        self._sock = sock
        self.is_local_socket = sock is not None and sock.family == getattr(socket, "AF_UNIX", None)

    @cached_property
    def uid(self) -> int | None:
        """None: not a user of this machine, or unknown."""
        try:
            found = self._ask_kernel()
        except OSError:
            return None
        return None if found == UNMAPPED_UID else found

    def _ask_kernel(self) -> int | None:
        if self._sock is None:
            return None
        if not self.is_local_socket:
            return tcp_user(self._sock.getpeername(), self._sock.getsockname())
        if not hasattr(socket, "SO_PEERCRED"):
            return own_uid()  # the file's mode keeps everyone else out
        raw = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", raw)[1])

    @cached_property
    def client(self) -> str:
        """Whose requests count together: a user of this machine, otherwise an address."""
        if self.uid is not None:
            return f"uid {self.uid}"
        try:
            return _network(self._sock.getpeername()[0]) if self._sock else ""
        except (OSError, IndexError):
            return ""


NO_PEER = Peer(None)


def peer_of(scope: Scope) -> Peer:
    """The peer that `monitor.web.connection` put into the scope."""
    state: dict[str, Any] = scope.get("state") or {}
    found = state.get("peer", NO_PEER)
    assert isinstance(found, Peer)
    return found


def _network(address: str) -> str:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if parsed.version == 4 or parsed.is_loopback:
        return str(parsed)
    return str(ipaddress.ip_network((parsed, NETWORK_BITS), strict=False))
