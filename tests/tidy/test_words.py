"""Words that Kafka does not use are no names here: one concept, one name, and that is the field's."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
INSTEAD = {
    "catalogues?": "catalog",
    "desk": "forwarder",
    "grounds?": "backend",
    "heirs?": "successor",
    "house": "broker, package",
    "parcels?": "batch",
    "purses?": "budget",
    "seats?": "assignment",
    "shel(f|ves)": "cache",
    "wish(es)?": "request",
    "witness(es)?": "watcher, client",
}
"""Words, as regular expressions, and what to write in their place; in a name of several words too."""
TREES = ("python", "rust", "docs", "README.md", "CONTRIBUTING.md")
_LOWER, _CAPITALIZED = "|".join(INSTEAD), "|".join(word.capitalize() for word in INSTEAD)
WORDS = re.compile(rf"(?<![a-zA-Z])({_LOWER})(?![a-zA-Z])|(?<![A-Z])({_CAPITALIZED})(?![a-z])")


def found(line: str) -> list[str]:
    return [match[0] for match in WORDS.finditer(line)]


def test_names_are_split_into_their_words() -> None:
    assert found("self._desk = TierGround(heirs)") == ["desk", "Ground", "heirs"]
    assert found("background desktop their Household theirs") == []


def test_no_private_words() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *TREES],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    places = [
        f"{path}:{number}: {word}"
        for path in listed.split("\0")
        if path.endswith((".py", ".rs", ".md", ".h", ".js", ".html"))
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1)
        for word in found(line)
    ]
    assert places == [], f"write instead: {INSTEAD}"
