"""The web-config file: what is wrong is named, what is not supported is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.model.errors import UserError
from monitor.web.webconfig import load_web_config

HASH = "$2b$04$" + "a" * 53


def load(tmp_path: Path, text: str) -> object:
    path = tmp_path / "web.yml"
    path.write_text(text, encoding="utf-8")
    return load_web_config(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tls_config: {}", "unknown key 'tls_config', did you mean 'tls_server_config'?"),
        ("tls_server_config: {cert_file: a}", "key_file is missing"),
        (
            "tls_server_config: {cert_file: a, key_file: b, min_version: TLS9}",
            "min_version: 'TLS9' must be one of",
        ),
        (
            "tls_server_config: {cert_file: a, key_file: b, cipher_suites: [X]}",
            "cipher_suites is not supported",
        ),
        (
            "tls_server_config: {cert_file: a, key_file: b, client_auth_type: RequireAndVerifyClientCert}",
            "needs client_ca_file",
        ),
        ("tls_server_config: [1]", "tls_server_config must be a mapping"),
        ("basic_auth_users: {ada: secret}", "the password of 'ada' is not a bcrypt hash"),
        ("http_server_config: {headers: {X: y}}", "extra headers are not supported"),
        ("- 1", "must be a mapping"),
        ("a: [", "is not YAML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        load(tmp_path, text)
    assert said in caught.value.sentence


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "web.yml").write_text(
        f"tls_server_config: {{cert_file: a.crt, key_file: /b.key}}\nbasic_auth_users: {{ada: '{HASH}'}}\n"
    )
    found = load_web_config(tmp_path / "web.yml")
    assert found.tls is not None
    assert (found.tls.cert, found.tls.key) == (tmp_path / "a.crt", Path("/b.key"))
    assert found.users == {"ada": HASH.encode()}


def test_an_empty_file_asks_for_nothing(tmp_path: Path) -> None:
    assert load(tmp_path, "") == load(tmp_path, "http_server_config: {http2: true}")
