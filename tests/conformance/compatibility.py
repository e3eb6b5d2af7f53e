"""Writes docs/compatibility.md after `make conformance`; fails where a test that passed no longer does."""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
TABLE = HERE.parents[1] / "docs" / "compatibility.md"
WORD = {"pass": "passed", "FAIL": "failed", "skip": "skipped"}
INTRO = """# Compatibility

Apache Kafka's own acceptance tests of share groups and its command-line tools, run unchanged against
sharecore by `make conformance`, which generates this page ([how it works](../tests/conformance/README.md)).
The baseline is Apache Kafka 4.3.1, one broker, under the same harness. A skipped test needs several brokers,
or a broker in its own JVM.

Not supported, and not covered by these tests:

- replication, clusters and failover: sharecore is one broker
- tiered storage
- streams groups (KIP-1071), delegation tokens, Kerberos
- these APIs of Apache Kafka 4.3.1: ALTER_REPLICA_LOG_DIRS (there is one log directory), UNREGISTER_BROKER
  (one broker), ADD_RAFT_VOTER and REMOVE_RAFT_VOTER (no controller quorum), WRITE_TXN_MARKERS and
  ADD_PARTITIONS_TO_TXN 4 and 5 (between brokers; the broker writes the markers when a transaction ends, so
  no open one is left to abort), STREAMS_GROUP_HEARTBEAT and STREAMS_GROUP_DESCRIBE, and the four APIs of
  delegation tokens. ApiVersions does not list them. It lists all others in the same versions, and newer ones
  of 4.4.0: ApiVersions 5, TxnOffsetCommit 6 and DeleteGroups 3
"""


def rows(file: Path, name: str) -> dict[str, tuple[str, str]]:
    """Test or tool -> (outcome, reason), from one of the harness's tables."""
    with file.open(newline="") as lines:
        found = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {tidy(row[name]): (WORD[row["status"]], row.get("reason") or "") for row in found}


def tidy(name: str) -> str:
    return name.removesuffix(" [1]").removeprefix("ShareConsumerTest.")


def result_rows(file: Path, columns: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Return the same from a run's results, which have no header."""
    with file.open(newline="") as lines:
        found = csv.DictReader(lines, columns, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {tidy(row["name"]): (WORD[row["status"]], row.get("reason") or "") for row in found}


def section(title: str, ours: dict[str, tuple[str, str]], apache: dict[str, tuple[str, str]]) -> str:
    counts = Counter(outcome for outcome, _ in ours.values())
    base = Counter(outcome for outcome, _ in apache.values())
    lines = [
        f"\n## {title}\n",
        "| | passed | failed | skipped |\n|---|---|---|---|",
        f"| sharecore | {counts['passed']} | {counts['failed']} | {counts['skipped']} |",
        f"| Apache Kafka 4.3.1 | {base['passed']} | {base['failed']} | {base['skipped']} |\n",
        "| test | sharecore | Apache Kafka 4.3.1 | remark |\n|---|---|---|---|",
    ]
    for name in sorted(set(ours) | set(apache)):
        outcome, reason = ours.get(name, ("not run", ""))
        remark = "" if outcome == "passed" else re.sub(r"\s+", " ", reason).replace("|", "\\|")[:160]
        lines.append(f"| {name} | {outcome} | {apache.get(name, ('not run', ''))[0]} | {remark} |")
    return "\n".join(lines) + "\n"


def passed_before() -> set[str]:
    if not TABLE.exists():
        return set()
    return set(re.findall(r"^\| (\S+) \| passed \|", TABLE.read_text(), re.MULTILINE))


def main(scratch: Path) -> int:
    tests: dict[str, tuple[str, str]] = {}
    for half in ("A-L", "M-Z"):
        tests |= result_rows(scratch / half / "results/results.tsv", ("status", "seconds", "name", "reason"))
    tools = result_rows(scratch / "tools/results/tools/tools.tsv", ("status", "rc", "name", "apis"))
    before = passed_before()
    TABLE.write_text(
        INTRO
        + section("Tests", tests, rows(HERE / "baseline/apache-4.3.1-one-node.tsv", "test"))
        + section("Command-line tools", tools, rows(HERE / "baseline/apache-4.3.1-tools.tsv", "tool"))
    )
    lost = sorted(name for name in before if (tests | tools).get(name, ("", ""))[0] != "passed")
    print(f"{TABLE.relative_to(HERE.parents[1])}: written")
    for name in lost:
        print(f"passed before and no longer does: {name}", file=sys.stderr)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
