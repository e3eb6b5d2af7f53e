"""Regular expressions in RE2 syntax: Apache Kafka's parser gives the same result for each of these."""

from __future__ import annotations

import pytest

from sharecore.coordinator.expressions import is_quick, matches, matches_of_each

_NAMES = ["orders", "Orders", "orders-2", "a.b", "ab", "aab", "10", "_"]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("orders", ["orders"]),
        ("orders.*", ["orders", "orders-2"]),
        ("ord", []),
        ("ab|a\\.b", ["a.b", "ab"]),
        (r"\Qa.b\E", ["a.b"]),
        (r"\Qa.b", ["a.b"]),
        ("(?i)ORDERS", ["orders", "Orders"]),
        ("(?i:o)rders|(?P<n>1)(?<m>0)", ["orders", "Orders", "10"]),
        ("o(?i)RDERS", ["orders"]),
        (r"\p{Lu}\p{L}+", ["Orders"]),
        (r"\pN+|\P{^Greek}", ["10"]),
        ("[[:upper:]][^[:digit:]]*", ["Orders"]),
        (r"[\d]+|[^\w]", ["10"]),
        ("[]a-]b|[a-a]{2}b", ["ab", "aab"]),
        ("a{1,2}?b", ["ab", "aab"]),
        (r"\141\x62|\x{61}{2}b", ["ab", "aab"]),
        ("^ab$", ["ab"]),
        (r"\Aab\z", ["ab"]),
        (r"\bab\b", ["ab"]),
        ("(?s-m:_)", ["_"]),
        ("{|a{,2}b", []),
        ("", []),
        (r"\p{Greek}*[^\p{Greek}]", ["_"]),
    ],
)
def test_names_are_matched_as_a_whole(expression: str, found: list[str]) -> None:
    assert matches(expression, _NAMES) == found


@pytest.mark.parametrize(
    "expression",
    [
        *(
            "(",
            ")",
            "a)|(b",
            "[",
            "[a",
            "[b-a]",
            "[a[:]",
            "[[:]",
            "[[:nothing:]]",
            "*",
            "(*)",
            "a|+",
            "a**",
            "a++",
        ),
        *("a*{2}", "{*", "a{2,1}", "a{1001}", "a{1,1001}", "\\", r"\Z", r"\C", r"\8", r"\1", r"\x", r"\x6"),
        *(r"\x{110000}", r"\p", r"\p{", r"\p{Nothing}", "(?=a)", "(?!a)", "(?<=a)", "(?>a)", "(?x)", "(?-)"),
        *("(?P=n)", "(?P<n", "(?P<é>a)", "(?P<n>a)(?P<n>b)", r"[\b]", r"[a-\d]", r"\u0061"),
    ],
)
def test_what_is_no_expression_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        matches(expression, _NAMES)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (r"\w" * 16_000, "too large: shorten it"),
        ("[[:^alpha:]]" * 2_700, "too large"),
        (r"\p{L}" * 6_500, "too large"),
        ("(" * 16_000 + ")" * 16_000, "nests too deeply"),
        ("[" + "[:" * 16_000, "missing closing ]"),
        ("((((.{10}){10}){10}){10})*", "more than 262144 bytes once compiled: shorten it"),
        ("(a{1000}){1000}", "more than 262144 bytes once compiled: shorten it"),
    ],
    ids=lambda each: each[:12],
)
def test_what_would_take_long_is_refused(expression: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        matches(expression, _NAMES)


def test_a_long_list_of_names_is_no_matter() -> None:
    names = [f"topic-{number}" for number in range(3_000)]
    assert matches("|".join(names), [*names, "topic-3000"]) == names


def test_how_long_expressions_take_is_known_before() -> None:
    assert is_quick(["orders-.*", "[ab]"])
    assert not is_quick(["a" * 1_000])
    assert not is_quick([f"orders-{number}" for number in range(10)])


def test_an_expression_that_no_broker_reads_any_more_matches_nothing() -> None:
    assert matches_of_each(["ab", "("], _NAMES) == {"ab": frozenset(["ab"]), "(": frozenset()}
