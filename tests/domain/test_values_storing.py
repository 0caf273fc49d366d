"""What is kept of a secret: its name."""

from __future__ import annotations

from bot.domain.codec import encode_value
from bot.domain.values import Sensitive, Text, Unknown, Value, empty_secrets, has_empty_secret, show

HOLDING: Value = {
    "env": [{"name": "KEY", "value": Sensitive("secret('aws').key", "hunter2")}],
    "header": Text(("Bearer ", Sensitive("secret('ci').token", "hunter3"), Unknown("known after apply: id"))),
    "plain": "text",
}


def test_only_names_of_secrets_are_kept() -> None:
    kept = empty_secrets(HOLDING)
    assert "hunter" not in str(encode_value(kept))
    assert show(kept) == show(HOLDING)


def test_what_lost_its_secret_is_told_from_what_has_it() -> None:
    assert not has_empty_secret(HOLDING)
    assert has_empty_secret(empty_secrets(HOLDING))
    assert not has_empty_secret({"plain": ["text", None, Unknown("known after apply: id")]})
