r"""Client regular expressions in RE2 syntax, as Apache Kafka accepts them.

They match names that are almost always ASCII, so classes such as `\\p{L}` cover only their ASCII characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache

from sharecore._core import Expression

_REPEATS_MAX = 1000
_ASCII = frozenset(map(chr, range(128)))
_LETTERS = frozenset(each for each in _ASCII if each.isalpha())
_DIGITS = frozenset("0123456789")
_WORD = _LETTERS | _DIGITS | {"_"}
_CATEGORIES = re.compile("C[cfos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?")
_SCRIPTS = {"Any": _ASCII, "Latin": _LETTERS, "Common": _ASCII - _LETTERS}
_ELSEWHERE = re.compile(
    r"""
    Arabic|Armenian|Avestan|Balinese|Bamum|Batak|Bengali|Bopomofo|Brahmi|Braille|Buginese
   |Buhid|Canadian_Aboriginal|Carian|Cham|Cherokee|Coptic|Cuneiform|Cypriot|Cyrillic|Deseret
   |Devanagari|Egyptian_Hieroglyphs|Ethiopic|Georgian|Glagolitic|Gothic|Greek|Gujarati|Gurmukhi
   |Han|Hangul|Hanunoo|Hebrew|Hiragana|Imperial_Aramaic|Inherited|Inscriptional_Pahlavi
   |Inscriptional_Parthian|Javanese|Kaithi|Kannada|Katakana|Kayah_Li|Kharoshthi|Khmer|Lao
   |Lepcha|Limbu|Linear_B|Lisu|Lycian|Lydian|Malayalam|Mandaic|Meetei_Mayek|Mongolian|Myanmar
   |New_Tai_Lue|Nko|Ogham|Ol_Chiki|Old_Italic|Old_Persian|Old_South_Arabian|Old_Turkic|Oriya
   |Osmanya|Phags_Pa|Phoenician|Rejang|Runic|Samaritan|Saurashtra|Shavian|Sinhala|Sundanese
   |Syloti_Nagri|Syriac|Tagalog|Tagbanwa|Tai_Le|Tai_Tham|Tai_Viet|Tamil|Telugu|Thaana|Thai
   |Tibetan|Tifinagh|Ugaritic|Vai|Yi
    """,
    re.VERBOSE,
)
"""Scripts without ASCII letters."""
_PERL = {"d": _DIGITS, "s": frozenset("\t\n\f\r "), "w": _WORD}
_POSIX = {
    "alnum": _LETTERS | _DIGITS,
    "alpha": _LETTERS,
    "ascii": _ASCII,
    "blank": frozenset("\t "),
    "cntrl": frozenset(each for each in _ASCII if not each.isprintable()),
    "digit": _DIGITS,
    "graph": frozenset(each for each in _ASCII if each.isprintable() and each != " "),
    "lower": frozenset(each for each in _LETTERS if each.islower()),
    "print": frozenset(each for each in _ASCII if each.isprintable()),
    "punct": frozenset(each for each in _ASCII - _LETTERS - _DIGITS if each.isprintable() and each != " "),
    "space": frozenset("\t\n\v\f\r "),
    "upper": frozenset(each for each in _LETTERS if each.isupper()),
    "word": _WORD,
    "xdigit": _DIGITS | frozenset("abcdefABCDEF"),
}
_ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PLACES = {"A": r"\A", "z": r"\z", "b": r"(?-u:\b)", "B": r"(?-u:\B)"}
_REPEAT = re.compile(r"\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\}")
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}")
_HEXADECIMAL = re.compile(r"x(?:([0-9a-fA-F]{2})|\{([0-9a-fA-F]+)\})")
_GROUP = re.compile(r"\(\?P?<([A-Za-z0-9_]+)>")
_FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_UNICODE_CLASS = re.compile(r"\\([pP])(?:\{(\^?)([^}]*)\}|([^{]))")
_BEYOND = r"\x{80}-\x{10ffff}"
_EVERYTHING = r"\x{0}-\x{10ffff}"
_SHORT = 256
"""Maximum length of an expression that compiles within a few milliseconds."""
_SHORT_BYTES_MAX, _BYTES_MAX = 1 << 18, 1 << 21
"""Approximate memory limits of a compiled expression, for short and long ones."""
_TRANSLATED_MAX = 100_000
_DEPTH_MAX = 250


def matches(expression: str, names: Iterable[str]) -> list[str]:
    """Return the names that an expression matches entirely, in order.

    Raises:
        ValueError: the expression is invalid, or takes too much time or memory.
    """
    return _compiled(expression).matching(list(names))


def fault_of(expression: str) -> str:
    """Return why an expression is invalid; empty if it is valid."""
    try:
        _compiled(expression)
    except ValueError as error:
        return str(error)
    return ""


def is_quick(expressions: Collection[str]) -> bool:
    """Return whether expressions are few and short enough to match without delay."""
    return sum(_SHORT + len(each) for each in expressions) <= 4 * _SHORT


def matches_of_each(expressions: Iterable[str], names: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return the matches of each expression; empty if only an earlier version accepted it."""
    found = {}
    for each in expressions:
        found[each] = frozenset[str]()
        with suppress(ValueError):
            found[each] = frozenset(matches(each, names))
    return found


def _compiled(expression: str) -> Expression:
    if len(expression) <= _SHORT:
        translated, bytes_max = _translated(expression), _SHORT_BYTES_MAX
    else:
        translated, bytes_max = _Translation(expression).whole(), _BYTES_MAX
    try:
        return Expression(translated, bytes_max)
    except ValueError as error:
        # a translated expression is valid: only its size can be wrong
        text = f"it takes more than {bytes_max} bytes once compiled: shorten it, or repeat less in it"
        raise ValueError(text) from error


@lru_cache(256)
def _translated(expression: str) -> str:
    """Return a short expression in the syntax of `Expression`."""
    return _Translation(expression).whole()


class _Translation:
    """Translator of an expression, from left to right.

    Attributes:
        parts: the translated parts, each one operand of a repetition.
        operand: the part that a repetition would apply to; None without one.
        size: number of translated characters.
        ends_posix: False once no later `:]` can end the name of a POSIX class.
    """

    def __init__(self, expression: str) -> None:
        self.text = expression
        self.at = 0
        self.parts: list[str] = []
        self.operand: int | None = None
        self.opened: list[int] = []
        self.names: set[str] = set()
        self.size = 0
        self.ends_posix = True

    def whole(self) -> str:
        """Return the entire translation.

        Raises:
            ValueError: the expression is invalid.
        """
        repeated = False
        while self.at < len(self.text):
            repeated = self._next(repeated)
        if self.opened:
            raise ValueError("missing closing )")
        return "".join(self.parts)

    def _next(self, repeated: bool) -> bool:
        """Translate the next element; return whether it is, or looks like, a repetition."""
        match self.text[self.at]:
            case "(":
                self._open()
            case ")":
                self._close()
            case "|":
                self._skip("|")
                self.operand = None
            case "^" | "$" as place:
                self._take(1, r"\A" if place == "^" else r"\z")
            case ".":
                self._take(1, ".")
            case "[":
                self._class()
            case "*" | "+" | "?" as operator:
                self._repeat(operator, repeated)
                return True
            case "{":
                if found := _REPEAT.match(self.text, self.at):
                    self._repeat(found[0], repeated)
                else:
                    self._take(1, _literal("{"))
                return True
            case "\\":
                self._escape()
            case character:
                self._take(1, _literal(character))
        return False

    def _take(self, length: int, part: str) -> None:
        """Append an operand of `length` characters in the expression."""
        self.operand = len(self.parts)
        self._skip(part, length)

    def _skip(self, part: str, length: int = 1) -> None:
        self.at += length
        self.parts.append(part)
        self.size += len(part)
        if self.size > _TRANSLATED_MAX:
            raise ValueError("expression is too large: shorten it")

    def _open(self) -> None:
        if not self.text.startswith("(?", self.at):
            self._begin("(?:", 1)
        elif found := _GROUP.match(self.text, self.at):
            if found[1] in self.names:
                raise ValueError(f"duplicate capture group name: {found[1]}")
            self.names.add(found[1])
            self._begin("(?:", len(found[0]))
        elif found := _FLAGS.match(self.text, self.at):
            on, off, end = found[1], found[2] or "", found[3]
            # of the flags, only case matters for a name that is matched entirely
            case = "-i" if "i" in off else "i" if "i" in on else ""
            if end == ":":
                self._begin(f"(?{case}:", len(found[0]))
            else:
                self._skip(f"(?{case})" if case else "", len(found[0]))
        else:
            raise ValueError("invalid or unsupported Perl syntax")

    def _begin(self, part: str, length: int) -> None:
        if len(self.opened) == _DEPTH_MAX:
            raise ValueError("expression nests too deeply")
        self.opened.append(len(self.parts))
        self._skip(part, length)
        self.operand = None

    def _close(self) -> None:
        if not self.opened:
            raise ValueError("unexpected )")
        begun = self.opened.pop()
        group = "".join(self.parts[begun:]) + ")"
        self.size -= len(group) - 1
        del self.parts[begun:]
        self._take(1, group)

    def _repeat(self, operator: str, repeated: bool) -> None:
        if self.operand is None:
            raise ValueError(f"missing argument to repetition operator: {operator}")
        if repeated:
            raise ValueError(f"invalid nested repetition operator: {operator}")
        if found := _REPEAT.match(operator):
            least, most = int(found[1]), int(found[3] or found[1])
            if not least <= most <= _REPEATS_MAX:
                raise ValueError(f"invalid repeat count: {operator}")
        self.at += len(operator)
        if self.text.startswith("?", self.at):
            self.at += 1  # greediness does not change which names match
        self.parts[self.operand] = f"(?:{self.parts[self.operand]}){operator}"

    def _escape(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if following in _PLACES and following:
            self._take(2, _PLACES[following])
        elif following == "Q":
            self._quoted()
        elif (found := self._named_class()) is not None:
            self._take(0, _set(found))
        else:
            self._take(0, _literal(self._character()))

    def _quoted(self) -> None:
        quoted, _, _ = self.text[self.at + 2 :].partition(r"\E")
        for character in quoted:
            self._take(1, _literal(character))
        self.at = min(self.at + 4, len(self.text))

    def _named_class(self) -> str | None:
        r"""Return the class of a `\\d` or `\\p{L}`; None if neither is next."""
        following = self.text[self.at + 1 : self.at + 2]
        if following.lower() in _PERL and following:
            self.at += 2
            return _either(_PERL[following.lower()], negated=following.isupper())
        if following not in ("p", "P"):
            return None
        found = _UNICODE_CLASS.match(self.text, self.at)
        if found is None:
            raise ValueError(f"invalid character class range: {self.text[self.at :]}")
        self.at += len(found[0])
        return _either(_unicode(found[3] or found[4] or ""), negated=(found[1] == "P") != bool(found[2]))

    def _character(self) -> str:
        """Return the character of an escape sequence."""
        self.at += 1
        if self.at == len(self.text):
            raise ValueError("trailing backslash at end of expression")
        character = self.text[self.at]
        if found := _OCTAL.match(self.text, self.at):
            self.at += len(found[0])
            return chr(int(found[0], 8))
        if found := _HEXADECIMAL.match(self.text, self.at):
            number = int(found[1] or found[2], 16)
            if number < 0x110000:
                self.at += len(found[0])
                return chr(number)
        if character not in _ESCAPES and character in _LETTERS | _DIGITS:
            raise ValueError(f"invalid escape sequence: \\{character}")
        self.at += 1
        return _ESCAPES.get(character, character)

    def _class(self) -> None:
        self.at += 1
        excluded = self.text.startswith("^", self.at)
        self.at += excluded
        found = ""
        is_first = True
        while is_first or not self.text.startswith("]", self.at):
            is_first = False
            if (name := self._posix()) is not None:
                found += name
            elif self.text.startswith("\\", self.at) and (named := self._named_class()) is not None:
                found += named
            else:
                found += self._range()
        self._take(1, _set(found, excluded=excluded))

    def _posix(self) -> str | None:
        """Return the class of a `[:alpha:]`; None if no such name is next."""
        if not self.text.startswith("[:", self.at) or not self.ends_posix:
            return None
        begin = self.at + 2
        end = begin if self.text.startswith("]", begin) else self.text.find(":]", begin)
        if end < 0:
            self.ends_posix = False
            return None
        name = self.text[begin:end]
        negated = name.startswith("^")
        characters = _POSIX.get(name[negated:])
        if characters is None:  # also for `[:]`
            raise ValueError(f"invalid character class range: {self.text[self.at : end + 2]}")
        self.at = end + 2
        return _either(characters, negated=negated)

    def _range(self) -> str:
        first = last = self._of_class()
        if self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at):
            self.at += 1
            last = self._of_class()
            if last < first:
                raise ValueError(f"invalid character class range: {first}-{last}")
        return f"{_literal(first)}-{_literal(last)}"

    def _of_class(self) -> str:
        if self.at >= len(self.text):
            raise ValueError("missing closing ]")
        if self.text[self.at] == "\\":
            return self._character()
        self.at += 1
        return self.text[self.at - 1]


def _literal(character: str) -> str:
    return character if character in _WORD else f"\\x{{{ord(character):x}}}"


@lru_cache(256)
def _either(characters: frozenset[str], *, negated: bool) -> str:
    """Return a class of these characters, or of all others."""
    if negated:
        return _either(_ASCII - characters, negated=False) + _BEYOND
    return "".join(map(_literal, sorted(characters)))


@lru_cache(256)
def _unicode(name: str) -> frozenset[str]:
    """Return the ASCII characters of a general category or a script."""
    if _CATEGORIES.fullmatch(name):
        return frozenset(each for each in _ASCII if unicodedata.category(each).startswith(name))
    if name in _SCRIPTS:
        return _SCRIPTS[name]
    if _ELSEWHERE.fullmatch(name):
        return frozenset()
    raise ValueError(f"invalid character class range: \\p{{{name}}}")


def _set(found: str, *, excluded: bool = False) -> str:
    """Return a class of the characters found; it may be empty."""
    return f"[{'^' * excluded}{found}]" if found else "[" + "^" * (not excluded) + _EVERYTHING + "]"
