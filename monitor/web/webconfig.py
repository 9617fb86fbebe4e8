"""TLS and basic auth for the TCP port, in the web-config format the Prometheus exporters share.

::

    tls_server_config: {cert_file: node.crt, key_file: node.key}
    basic_auth_users: {prometheus: $2y$10$…}    # bcrypt, as made by htpasswd -nBC 10

Paths are relative to the file. What this version does not support is rejected, never ignored.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monitor.model.errors import UserError
from monitor.model.files import read_text
from monitor.web.login import BasicAuth

if TYPE_CHECKING:
    import ssl

    from starlette.types import ASGIApp

TOP_KEYS = ("tls_server_config", "http_server_config", "basic_auth_users")
TLS_KEYS = (
    "cert_file",
    "key_file",
    "client_auth_type",
    "client_ca_file",
    "min_version",
    "max_version",
    "cipher_suites",
    "prefer_server_cipher_suites",
)
CERTIFICATE_REQUIRED = "RequireAndVerifyClientCert"
CLIENT_AUTH = ("NoClientCert", "VerifyClientCertIfGiven", CERTIFICATE_REQUIRED)
VERSIONS = {"TLS10": "TLSv1", "TLS11": "TLSv1_1", "TLS12": "TLSv1_2", "TLS13": "TLSv1_3"}
INSTALL = "install it with: pip install 'gpumon-train[auth]'"
HASH = re.compile(r"\$2[aby]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}")
"""As bcrypt writes it: kind, cost, salt and hash."""


@dataclass(frozen=True, slots=True)
class Tls:
    cert: Path
    key: Path
    client_auth: str = "NoClientCert"
    client_ca: Path | None = None
    min_version: str = "TLS12"
    max_version: str = "TLS13"


@dataclass(frozen=True, slots=True)
class WebConfig:
    tls: Tls | None = None
    users: dict[str, bytes] = field(default_factory=dict)

    @property
    def identifies_clients(self) -> bool:
        """By a password, or by a certificate that every client must have."""
        return bool(self.users) or (self.tls is not None and self.tls.client_auth == CERTIFICATE_REQUIRED)

    def protect(self, app: ASGIApp) -> ASGIApp:
        return BasicAuth(app, self.users) if self.users else app

    def context(self) -> ssl.SSLContext:
        """The TLS context. Raises `UserError` if the certificate or key cannot be used."""
        import ssl

        assert self.tls is not None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = getattr(ssl.TLSVersion, VERSIONS[self.tls.min_version])
        context.maximum_version = getattr(ssl.TLSVersion, VERSIONS[self.tls.max_version])
        try:
            context.load_cert_chain(self.tls.cert, self.tls.key)
            if self.tls.client_ca:
                context.load_verify_locations(self.tls.client_ca)
        except (OSError, ssl.SSLError) as error:
            raise UserError(f"cannot use the certificate {self.tls.cert}: {error}") from None
        if self.tls.client_auth != "NoClientCert":
            required = self.tls.client_auth == CERTIFICATE_REQUIRED
            context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
        return context


NO_WEB_CONFIG = WebConfig()


# ── The file ─────────────────────────────────────────────────────────────────────────────────────


def load_web_config(path: Path) -> WebConfig:
    """The validated file. Raises `UserError` naming the key that is wrong."""
    table = _read(path)
    _known(table, TOP_KEYS, str(path))
    http = _section(table, "http_server_config", path)
    if http.get("headers") or set(http) - {"http2", "headers"}:
        raise UserError(f"{path}: http_server_config: extra headers are not supported")
    return WebConfig(_tls(_section(table, "tls_server_config", path), path), _users(table, path))


def _read(path: Path) -> dict[str, Any]:
    try:
        import yaml
    except ImportError:
        raise UserError("a web-config file needs PyYAML", hint=INSTALL) from None
    try:
        table = yaml.safe_load(read_text(path)) or {}
    except OSError as error:
        raise UserError(f"cannot read the web-config file {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(table, dict):
        raise UserError(f"{path}: must be a mapping with the keys {', '.join(TOP_KEYS)}")
    return table


def _section(table: dict[str, Any], key: str, path: Path) -> dict[str, Any]:
    section = table.get(key) or {}
    if not isinstance(section, dict):
        raise UserError(f"{path}: {key} must be a mapping")
    return section


def _known(table: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            raise UserError(
                f"{where}: unknown key {key!r}" + (f", did you mean {near[0]!r}?" if near else "")
            )


def _tls(table: dict[str, Any], path: Path) -> Tls | None:
    if not table:
        return None
    where = f"{path}: tls_server_config"
    _known(table, TLS_KEYS, where)
    if table.get("cipher_suites"):
        raise UserError(
            f"{where}: cipher_suites is not supported", hint="leave it out: TLS 1.2 and 1.3 defaults"
        )
    for key in ("cert_file", "key_file"):
        if not table.get(key):
            raise UserError(f"{where}: {key} is missing")
    low, high = str(table.get("min_version", "TLS12")), str(table.get("max_version", "TLS13"))
    _one_of(low, tuple(VERSIONS), f"{where}: min_version")
    _one_of(high, tuple(VERSIONS), f"{where}: max_version")
    auth = str(table.get("client_auth_type") or "NoClientCert")
    _one_of(auth, CLIENT_AUTH, f"{where}: client_auth_type")
    ca = path.parent / str(table["client_ca_file"]) if table.get("client_ca_file") else None
    if auth != "NoClientCert" and ca is None:
        raise UserError(f"{where}: client_auth_type {auth} needs client_ca_file")
    return Tls(
        path.parent / str(table["cert_file"]), path.parent / str(table["key_file"]), auth, ca, low, high
    )


def _one_of(value: str, known: tuple[str, ...], where: str) -> None:
    if value not in known:
        raise UserError(f"{where}: {value!r} must be one of {', '.join(known)}")


def _users(table: dict[str, Any], path: Path) -> dict[str, bytes]:
    users = _section(table, "basic_auth_users", path)
    for name, value in users.items():
        if not isinstance(value, str) or not HASH.fullmatch(value):
            raise UserError(
                f"{path}: basic_auth_users: the password of {str(name)!r} is not a bcrypt hash",
                hint=f"make one with: htpasswd -nBC 10 {name}",
            )
    if users:
        _need_bcrypt()
    return {str(name): value.encode() for name, value in users.items()}


def _need_bcrypt() -> None:
    try:
        import bcrypt  # noqa: F401
    except ImportError:
        raise UserError("basic auth needs bcrypt", hint=INSTALL) from None
