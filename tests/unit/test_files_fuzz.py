"""Settings and web-config files with any content: they are understood, or one sentence says what is wrong."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitor.model import settings as options
from monitor.model.errors import UserError
from monitor.web.webconfig import load_web_config

EXAMPLES = int(os.environ.get("GPUMON_EXAMPLES", "150"))
"""For each test; `make fuzz` tries more."""
QUICK = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
NAMES = [option.name for option in options.options()]
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.dates(),
    st.binary(max_size=9),
)
TREES = st.recursive(
    VALUES, lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=8), one, max_size=3)
)
WEB_KEYS = st.sampled_from(
    [
        "tls_server_config",
        "basic_auth_users",
        "http_server_config",
        "cert_file",
        "key_file",
        "ada",
        "client_ca_file",
    ]
)
WEB = st.dictionaries(WEB_KEYS, st.dictionaries(WEB_KEYS, TREES, max_size=3) | TREES, max_size=3)


def load_web(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    try:
        load_web_config(path)
    except UserError as error:
        assert error.sentence and "\n" not in error.sentence


@QUICK
@given(text=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_as_web_config(tmp_path: Path, text: bytes) -> None:
    load_web(tmp_path / "web.yml", text)


@QUICK
@given(tree=WEB)
def test_any_tree_as_web_config(tmp_path: Path, tree: object) -> None:
    load_web(tmp_path / "web.yml", yaml.safe_dump(tree).encode("utf-8", "surrogatepass"))


def load_settings(path: Path) -> None:
    try:
        options.load(argparse.Namespace(config=str(path)), {})
    except UserError as error:
        assert error.sentence


@QUICK
@given(text=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_as_settings(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "config.toml").write_bytes(text)
    load_settings(tmp_path / "config.toml")


TOML_VALUES = st.sampled_from(
    ["1", "-1", "0.5", "nan", "inf", "1e400", "true", "''", "'none'", "'0x'", "'٣'", "'1e9G'", "':99999'",
     "'²'", "[]", "[1]", "['a', 2]", "{}", "1979-05-27", "'0600'", "'\\u0000'", "9999999999999999999"]
)  # fmt: skip


@QUICK
@given(table=st.dictionaries(st.sampled_from(NAMES), TOML_VALUES, max_size=4))
def test_any_value_as_a_setting(tmp_path: Path, table: dict[str, str]) -> None:
    text = "".join(f"{name} = {value}\n" for name, value in table.items())
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    load_settings(tmp_path / "config.toml")


@QUICK
@given(name=st.sampled_from(NAMES), text=st.text(max_size=30))
def test_any_text_in_a_variable(name: str, text: str) -> None:
    try:
        options.load(None, {options.variable(name): text})
    except UserError as error:
        assert options.variable(name) in error.sentence or "scenario" in error.sentence


def test_the_home_of_nobody_is_no_traceback() -> None:
    """Found by 5,000 examples: pathlib gives up on the home of an unknown user."""
    chosen = options.load(None, {options.variable("store"): "~nobody-of-that-name/history.db"})
    assert str(chosen.store) == "~nobody-of-that-name/history.db"
