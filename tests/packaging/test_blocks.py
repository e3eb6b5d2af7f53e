"""Each block of code on a page is run by a test, or it is said here why none can."""

from __future__ import annotations

from collections import Counter

from tests.harness.blocks import blocks
from tests.harness.broker import ROOT
from tests.packaging.test_install import ANY_ORDER, MARK

INSTALL = "tests/packaging/test_install.py"
RUN_BY = {
    ("README.md", "python"): INSTALL,
    ("README.md", "text"): INSTALL,
    ("docs/adapters.md", "python"): "tests/adapters/test_pages.py",
    ("docs/admin.md", "python"): INSTALL,
    ("docs/client.md", "console"): INSTALL,
    ("docs/client.md", "python"): INSTALL,
    ("docs/clients.md", "go"): "tests/interop/go/test_go.py",
    ("docs/clients.md", "java"): "tests/interop/test_languages.py",
    ("docs/clients.md", "python"): INSTALL,
    ("docs/embedding.md", "python"): "tests/packaging/test_pages.py",
    ("docs/install.md", "console"): INSTALL,
    ("docs/producer.md", "console"): INSTALL,
    ("docs/producer.md", "python"): INSTALL,
    ("docs/queues.md", "python"): INSTALL,
    ("docs/schedules.md", "python"): INSTALL,
    ("docs/testing.md", "go"): "tests/packaging/test_container.py",
    ("docs/testing.md", "java"): "tests/packaging/test_container.py",
    ("docs/testing.md", "python"): INSTALL,
}
"""The test that runs the blocks of a page in a language; those of a tour, or marked, need no entry."""
NOT_RUN = {
    ("README.md", "console"): "the set-up itself: every run of the tests begins with it",
    ("docs/admin.md", "console"): "a filter of jq's, and the output of the program above it",
    ("docs/internals.md", "python"): "signatures; tests/tidy/test_architecture.py compares them",
    ("docs/bucket.md", "json"): "rights on Amazon's S3, which is not tried here",
    ("docs/client.md", "text"): "a line of a log",
    (
        "docs/deployment.md",
        "console",
    ): "takes a container engine; test_container.py runs what the image runs",
    (
        "docs/kubernetes.md",
        "yaml",
    ): "parts of files that packaging/helm/check.py renders",
    (
        "docs/metrics.md",
        "console",
    ): "one installation's; tests/interop/test_telemetry.py runs the same tools",
    ("docs/metrics.md", "properties"): "two settings, which tests/interop/test_telemetry.py sets",
    ("docs/metrics.md", "yaml"): "Prometheus's; `make check-packaging` tries the rules that it names",
    ("docs/queues.md", "console"): "counts of one run of the breaker; tests/interop/test_queues.py trips it",
    ("docs/spark-jobs.md", "console"): "counts of one data set; `make spark` runs each command",
    ("docs/spark.md", "python"): "takes Spark: `make spark` runs the same calls",
    ("docs/testing.md", "console"): "runs what the blocks above it hold",
    ("docs/verify.md", "console"): "figures of one run; tests/interop/test_verify.py runs the command",
    ("docs/verify.md", "json"): "lines of a history; tests/unit/verify checks such lines",
    ("docs/tier.md", "properties"): "takes a cluster of the reader's",
    ("docs/tier.md", "sh"): "takes a cluster of the reader's; tests/interop/tier runs the same commands",
}


def test_each_block_is_run_or_has_a_reason() -> None:
    unmarked = Counter(
        (each.page, each.language)
        for each in blocks()
        if each.mark not in (MARK, ANY_ORDER) and not each.in_tour
    )
    named = RUN_BY.keys() | NOT_RUN.keys()
    assert unmarked.keys() - named == set(), "blocks that no test runs"
    assert named - unmarked.keys() == set(), "there are no such blocks"
    assert RUN_BY.keys() & NOT_RUN.keys() == set()


def test_what_runs_a_block_is_there() -> None:
    assert [path for path in set(RUN_BY.values()) if not (ROOT / path).is_file()] == []
