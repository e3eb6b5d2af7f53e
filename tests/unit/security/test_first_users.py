from __future__ import annotations

import pytest

from sharecore.errors import ConfigError
from sharecore.security.first_users import FirstUser, parse_add_scram
from sharecore.security.plain import parse_jaas


@pytest.mark.parametrize(
    ("text", "user"),
    [
        (
            "SCRAM-SHA-256=[name=alice,password=s,iterations=5000]",
            FirstUser("SCRAM-SHA-256", "alice", "s", 5000),
        ),
        ('SCRAM-SHA-512=[name="a,b",password="p=q,"]', FirstUser("SCRAM-SHA-512", "a,b", "p=q,", 4096)),
    ],
)
def test_a_first_user(text: str, user: FirstUser) -> None:
    assert parse_add_scram(text) == user
    assert user.password not in repr(user) or len(user.password) == 1


@pytest.mark.parametrize(
    "text",
    [
        "alice:planted",
        "SCRAM-SHA-1=[name=a,password=planted]",
        "SCRAM-SHA-256=[password=planted]",
        "SCRAM-SHA-256=[name=a,password=planted,iterations=1]",
        "SCRAM-SHA-256=[name=a,password=planted,iterations=\u00b2]",
        "SCRAM-SHA-256=[name=a,password=planted,salt=x]",
    ],
)
def test_first_users_that_are_refused_without_telling_the_secret(text: str) -> None:
    with pytest.raises(ConfigError, match="--add-scram") as caught:
        parse_add_scram(text)
    assert "planted" not in str(caught.value)


def test_a_login_of_jaas() -> None:
    login = parse_jaas("a.B  required\n  user_x=\"p;=\\\"'\" user_y='q' z=1;")
    assert login == ("a.B", {"user_x": "p;=\"'", "user_y": "q", "z": "1"})


@pytest.mark.parametrize(
    "text", ["", "a.B;", "a.B required", 'a.B required x="planted;', "a.B required planted;"]
)
def test_logins_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"allowed|closed") as caught:
        parse_jaas(text)
    assert "planted" not in str(caught.value)
