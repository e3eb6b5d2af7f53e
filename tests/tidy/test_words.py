"""One concept has one name, and that is the field's, in American spelling."""

from __future__ import annotations

import re
from pathlib import Path

from tests.tidy.tree import line_of, text, tracked

INSTEAD = {
    "behaviours?": "behavior",
    "catalogues?": "catalog",
    "colours?": "color",
    "desk": "forwarder",
    "grounds?": "backend",
    "hear(s|d)?": "get, receive",
    "heirs?": "successor",
    "house": "broker, package",
    "neighbours?": "neighbor",
    "parcels?": "batch",
    "purses?": "budget",
    "seats?": "assignment",
    "shel(f|ves)": "cache",
    "tell(s|ing)?": "report, notify",
    "told": "reported, notified",
    "untold": "unreported",
    "wish(es)?": "request",
    "witness(es)?": "watcher, client",
}
"""Words, as regular expressions, and what to write in their place; in a name of several words too."""
TREES = ("python", "rust", "docs", "README.md", "CONTRIBUTING.md")
GLOSSARY = Path("docs/decisions/names.md")
SUFFIXES = {".py", ".rs", ".md", ".h", ".js", ".html"}
_LOWER, _CAPITALIZED = "|".join(INSTEAD), "|".join(word.capitalize() for word in INSTEAD)
WORDS = re.compile(rf"(?<![a-zA-Z])(?:{_LOWER})(?![a-zA-Z])|(?<![A-Z])(?:{_CAPITALIZED})(?![a-z])")


def found(source: str) -> list[tuple[int, str]]:
    """List the words found, each with its line."""
    return [(line_of(source, match.start()), match[0]) for match in WORDS.finditer(source)]


def test_names_are_split_into_their_words() -> None:
    assert found("self._desk = \nTierGround(heirs)") == [(1, "desk"), (2, "Ground"), (2, "heirs")]
    assert found("background desktop their Household theirs") == []


def test_no_private_words() -> None:
    places = [
        f"{path}:{line}: {word}"
        for path in tracked()
        if path.parts[0] in TREES and path.suffix in SUFFIXES and path != GLOSSARY
        for line, word in found(text(path))
    ]
    assert places == [], f"{GLOSSARY}; write instead: {INSTEAD}"
