from __future__ import annotations

import pytest

from sharecore.errors import ConfigError
from sharecore.spark.state_options import read_state_options


def test_what_is_not_said_is_history_and_the_first_thing_that_cannot_be_read_ends_it() -> None:
    chosen = read_state_options({"Path": "/data"})
    assert (chosen.path, chosen.view, chosen.mode, chosen.group) == ("/data", "history", "FAILFAST", None)
    chosen = read_state_options(
        {"kafka.bootstrap.servers": "there:1", "VIEW": "Live", "mode": "permissive", "group.id": "g"}
    )
    assert (chosen.path, chosen.view, chosen.mode, chosen.group) == (None, "live", "PERMISSIVE", "g")
    assert (chosen.servers, chosen.connection["default.api.timeout.ms"]) == ("there:1", "20000")


def test_options_are_checked() -> None:
    for given, message in {
        (("path", "x"), ("kafka.bootstrap.servers", "y:1")): "exclude each other",
        (("view", "live"),): "kafka.bootstrap.servers is missing, or path",
        (("path", "x"), ("mode", "ignore")): "one of FAILFAST, PERMISSIVE, DROPMALFORMED",
        (("path", "x"), ("groupid", "g")): "did you mean group.id",
    }.items():
        with pytest.raises(ConfigError, match=message):
            read_state_options(dict(given))


def test_settings_of_a_jvm_are_understood() -> None:
    login = 'a.PlainLoginModule required username="u" password="p";'
    given = {
        "kafka.bootstrap.servers": "there:1",
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": login,
    }
    connection = read_state_options(given).connection
    assert (connection["sasl.username"], connection["sasl.password"]) == ("u", "p")
