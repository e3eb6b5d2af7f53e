"""A certificate's subject as text, in Java's format (RFC 2253)."""

from __future__ import annotations

from collections.abc import Iterator

# the types with a keyword in RFC 2253; others are written as numbers, with hexadecimal values
_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_TEXT_TAGS = {
    12: "utf-8",
    18: "ascii",
    19: "ascii",
    20: "latin-1",
    22: "ascii",
    28: "utf-32-be",
    30: "utf-16-be",
}
_ESCAPED = frozenset(',=+<>#;"\\')


def subject_of(certificate: bytes) -> str:
    """Return the subject's name, most specific part first: `CN=worker,O=Example`.

    Args:
        certificate: X.509 in DER.

    Raises:
        ValueError: the data is not a certificate.
    """
    from cryptography.x509 import load_der_x509_certificate

    name = load_der_x509_certificate(certificate).subject.public_bytes()
    parts = [
        "+".join(_attribute(attribute) for _, attribute, _ in _elements(relative))
        for _, relative, _ in _elements(next(_elements(name))[1])
    ]
    return ",".join(reversed(parts))


def _attribute(der: bytes) -> str:
    (_, oid, _), (tag, value, whole) = _elements(der)
    number = _object_id(oid)
    keyword, encoding = _KEYWORDS.get(number), _TEXT_TAGS.get(tag)
    if keyword is None or encoding is None:
        return f"{keyword or number}=#{whole.hex()}"
    return f"{keyword}={_escape(value.decode(encoding, 'replace'))}"


def _escape(text: str) -> str:
    core = text.strip(" ")
    lead = len(text) - len(text.lstrip(" "))
    escaped = "".join(f"\\{letter}" if letter in _ESCAPED else letter for letter in core)
    return "\\ " * lead + escaped + "\\ " * (len(text) - lead - len(core))


def _elements(der: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield tag, content and full encoding of each element."""
    at = 0
    while at < len(der):
        tag, length, body = der[at], der[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            length, body = int.from_bytes(der[body : body + size], "big"), body + size
        yield tag, der[body : body + length], der[at : body + length]
        at = body + length


def _object_id(content: bytes) -> str:
    numbers, value = [], 0
    for octet in content:
        value = value << 7 | octet & 0x7F
        if not octet & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
