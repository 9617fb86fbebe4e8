"""Secrets on command lines are hidden; what only looks like one is not."""

from __future__ import annotations

import pytest

from sdk.redact import redact, redact_text


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["--wandb-key=abc123"], ["--wandb-key=***"]),
        (["--wandb-key", "abc123", "--lr", "0.1"], ["--wandb-key", "***", "--lr", "0.1"]),
        (["WANDB_API_KEY=abc", "python"], ["WANDB_API_KEY=***", "python"]),
        (["--apiKey=abc"], ["--apiKey=***"]),
        (["trainer.logger.token=abc"], ["trainer.logger.token=***"]),
        (["-p", "--password"], ["-p", "--password"]),
        (["--password", "--verbose"], ["--password", "--verbose"]),
        (["s3://user:pw@host/data"], ["s3://***@host/data"]),
        (["--data=https://h/x?sig=abc&n=1"], ["--data=https://h/x?sig=***&n=1"]),
        (["--data", "https://h/x?access_token=abc#top"], ["--data", "https://h/x?access_token=***#top"]),
        (["hf_abcdefghijklmnop"], ["***"]),
        (["--hub=hf_abcdefghijklmnop"], ["--hub=***"]),
        (["-H", "Authorization: Bearer abc.def"], ["-H", "Authorization: Bearer ***"]),
        (["+wandb.api_key=abc", "++a/b.key=abc"], ["+wandb.api_key=***", "++a/b.key=***"]),
        (["--set=token=abc", "--auth:token", "abc"], ["--set=token=***", "--auth:token", "***"]),
        (["--pass", "abc", "--accesstoken=abc"], ["--pass", "***", "--accesstoken=***"]),
        (["postgres://user:p@ss@host/db"], ["postgres://***@host/db"]),
        (["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc"], ["***"]),
    ],
)
def test_secrets_are_hidden(given: list[str], shown: list[str]) -> None:
    assert redact(given) == shown


@pytest.mark.parametrize(
    "words",
    [
        ["python", "train.py", "--max-tokens", "512", "--tokenizer=bpe", "--lr", "3e-4"],
        ["--set=a=b", "--passes", "3", "https://h/a?m=x@y", "f('http://a','b@c')", "a=" * 5000],
        ["--monkey=1", "--keys", "a", "--author", "ada", "--keyframes=3"],
        ["https://example.org/data.tar?n=1", "user@host:/path", "a=b", "--", "-", "", "="],
    ],
)
def test_what_is_no_secret_stays(words: list[str]) -> None:
    assert redact(words) == words


def test_a_line_in_one_piece() -> None:
    assert redact_text("python train.py --token abc  --n 1") == "python train.py --token ***  --n 1"
