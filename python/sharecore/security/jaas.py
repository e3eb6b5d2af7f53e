"""A login module and its options, in Java's JAAS format (`sasl.jaas.config`)."""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[=;]|[^\s=;"']+)""")
_FLAGS = ("required", "requisite", "sufficient", "optional")


class Login(NamedTuple):
    """One entry: the module's class and options."""

    module: str
    options: dict[str, str]


def parse_jaas(text: str) -> Login:
    """Parse `org.example.PlainLoginModule required user_alice="secret";`.

    Raises:
        ValueError: it is invalid; the message does not contain its content.
    """
    words = _words(text)
    if len(words) < 3 or words[-1] != ";" or words[1].lower() not in _FLAGS:
        raise ValueError('no login; allowed: Module required key="value" ... ;')
    options, at = {}, 2
    while at < len(words) - 1:
        if words[at + 1] != "=" or at + 2 >= len(words) - 1:
            raise ValueError('an option without a value; allowed: key="value"')
        options[_bare(words[at])] = _bare(words[at + 2])
        at += 3
    return Login(words[0], options)


def _words(text: str) -> list[str]:
    words, at, text = [], 0, text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError("a quotation mark that is not closed")
        words.append(match[1])
        at = match.end()
    return words


def _bare(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word[1:-1]) if word[0] in "\"'" else word
