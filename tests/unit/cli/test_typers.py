"""Groups of commands print their help, asked for or not."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from sharecore.cli.app import app
from sharecore.cli.typers import CONTEXT


@pytest.mark.parametrize("name", ["acls", "config", "dlq", "spark", "state", "store", "users"])
def test_a_group_alone_and_a_group_asked_for_help_print_the_same(name: str) -> None:
    asked = [CliRunner().invoke(app, [name, option]) for option in CONTEXT["help_option_names"]]
    assert [each.exit_code for each in asked] == [0, 0]
    alone = CliRunner().invoke(app, [name])
    assert {each.output for each in asked} == {alone.output}
    assert f"{name} [OPTIONS] COMMAND" in alone.output
