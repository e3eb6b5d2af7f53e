"""What a script's references to earlier answers stand for."""

from __future__ import annotations

from typing import Any

from tests.differential.wire.names import Names
from tests.differential.wire.producers import Sequences
from tests.differential.wire.script import Ask

from sharecore.protocol.schema import Struct, load
from sharecore.protocol.schema import versions as versions_of

_MAX = 2**31 - 1


class World:
    """Epochs of members, of share sessions and of producers, by Apache Kafka's answers."""

    def __init__(self) -> None:
        self._members: dict[str, int] = {}
        self._sessions: dict[str, int] = {}
        self._opened: dict[tuple[str, str], None] = {}
        self._met: dict[str, set[str]] = {}
        self._sequences = Sequences()

    def literal(self, fields: Any) -> Any:
        """Fields with numbers in the place of references."""
        if isinstance(fields, list):
            return [self.literal(value) for value in fields]
        if not isinstance(fields, dict):
            return fields
        if "epoch" in fields and "plus" in fields:
            return self._members.get(fields["epoch"], 0) + fields["plus"]
        if "session" in fields and "plus" in fields:
            return self._sessions.get(fields["session"], 0) + fields["plus"]
        if "epoch_of" in fields:
            return self._sequences.epoch(fields["epoch_of"]) + fields["plus"]
        if "next" in fields:
            return min(max(-1, self._sequences.following(fields["next"]) + fields["plus"]), _MAX)
        return {name: self.literal(value) for name, value in fields.items()}

    def observe(self, ask: Ask, literal: dict[str, Any], answer: Any) -> None:
        """Takes note of what Apache Kafka answered."""
        if not isinstance(answer, dict):
            return
        self._sequences.observe(ask, literal, answer)
        if answer.get("error_code") != 0:
            return
        group, member = literal.get("group_id"), literal.get("member_id")
        if "member_epoch" in answer:
            member = answer["member_id"] or member  # it may have been given one
            self._members[f"{group} {member}"] = max(answer["member_epoch"], 0)
            self._met.setdefault(str(group), set()).add(str(member))
        elif "share_session_epoch" in literal:
            session = f"{ask.on} {group} {member}"
            epoch = literal["share_session_epoch"]
            self._opened[str(group), str(member)] = None
            self._sessions[session] = 0 if epoch == -1 else 1 if epoch == _MAX else epoch + 1

    def members(self, group: Any) -> int:
        """How many members a group has had."""
        return len(self._met.get(str(group), ()))

    def sessions(self) -> list[tuple[str, str]]:
        """Group and member of each share session that was opened.

        It may be there still although its connection is gone: Apache Kafka ends with a connection only the
        session that was opened on it last.
        """
        return list(self._opened)

    def reopen(self) -> None:
        """The brokers began anew: no session is left."""
        self._sessions.clear()
        self._opened.clear()

    def close(self, connection: str) -> None:
        """A connection ended, and its sessions with it."""
        for session in [name for name in self._sessions if name.startswith(connection + " ")]:
            del self._sessions[session]


def to_broker(ask: Ask, literal: dict[str, Any], names: Names) -> dict[str, Any]:
    """The fields of a request as the codec of one broker wants them; fields of other versions are left out.

    Raises:
        ValueError: no version of the request has a field of this name.
    """
    versions = [
        load(ask.key, version, response=False).struct for version in versions_of(ask.key, response=False)
    ]
    return _struct(load(ask.key, ask.version, response=False).struct, versions, literal, names)


def _struct(struct: Struct, versions: list[Struct], fields: dict[str, Any], names: Names) -> dict[str, Any]:
    message: dict[str, Any] = {}
    for name, value in fields.items():
        field = struct.field(name)
        if field is None:
            if not any(version.field(name) for version in versions):
                raise ValueError(f"{struct.name} has no {name}")
            continue
        inner = field.struct
        if inner is not None:
            others = [
                found.struct
                for version in versions
                if (found := version.field(name)) and found.struct is not None
            ]
            if isinstance(value, list):
                message[name] = [_struct(inner, others, item, names) for item in value]
            else:
                message[name] = value if value is None else _struct(inner, others, value, names)
        elif isinstance(value, list):
            items = [names.to_broker(item, is_id=field.kind == "uuid") for item in value]
            message[name] = bytes(item & 0xFF for item in items) if field.kind == "int8" else items
        else:
            message[name] = names.to_broker(value, is_id=field.kind == "uuid")
    return message
