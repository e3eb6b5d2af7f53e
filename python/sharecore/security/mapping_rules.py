"""`ssl.principal.mapping.rules`: maps certificate subjects to principal names (KIP-371)."""

from __future__ import annotations

import re
from typing import NamedTuple

from sharecore.errors import ConfigError

_RULE = re.compile(r"DEFAULT|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)")
_REFERENCE = re.compile(r"\$(\d)|\\(.)")


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    replacement: str
    letters: str


class MappingRules:
    """Rules in order; the first one matching the whole subject applies.

    Args:
        text: the setting: `RULE:pattern/replacement/[LU]` and `DEFAULT`, with commas between.

    Raises:
        ConfigError: the setting is invalid.
    """

    def __init__(self, text: str) -> None:
        self._rules: list[_Rule | None] = []
        at, text = 0, text.strip() or "DEFAULT"
        while at < len(text):
            match = _RULE.match(text, at)
            end = match.end() if match is not None else at
            if match is None or text[end:].lstrip()[:1] not in ("", ","):
                raise ConfigError(
                    f"ssl.principal.mapping.rules={text}: cannot be read from {text[at:]!r} on; "
                    "allowed: RULE:pattern/replacement/[LU] and DEFAULT, with commas between"
                )
            self._rules.append(_rule(text, match))
            at = end + len(text[end:]) - len(text[end:].lstrip(" ,\n"))

    def name(self, subject: str) -> str | None:
        """Return the principal's name for a certificate's subject; None if no rule matches."""
        for rule in self._rules:
            if rule is None:
                return subject
            if rule.pattern.fullmatch(subject):
                name = rule.pattern.sub(rule.replacement, subject, count=1)
                return {"L": name.lower(), "U": name.upper()}.get(rule.letters, name)
        return None


def _rule(text: str, match: re.Match[str]) -> _Rule | None:
    if match[0] == "DEFAULT":
        return None
    try:
        pattern = re.compile(match[1].replace("\\/", "/"))
    except re.error as error:
        raise ConfigError(f"ssl.principal.mapping.rules={text}: {match[1]}: {error}") from None

    def reference(found: re.Match[str]) -> str:
        if found[1] is None:
            return re.escape(found[2]) if found[2] == "\\" else found[2]
        # a `$` without a group is literal
        return rf"\g<{found[1]}>" if int(found[1]) <= pattern.groups else f"${found[1]}"

    return _Rule(pattern, _REFERENCE.sub(reference, match[2]), match[3])
