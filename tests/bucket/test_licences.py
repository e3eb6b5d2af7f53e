"""The crates that reach S3, which are in the released wheel and in no other build."""

from __future__ import annotations

import re

from tests.packaging.test_release import THIRD_PARTY, linked


def test_the_licences_name_the_crates_of_a_build_that_reaches_s3() -> None:
    listed = set(re.findall(r"^\| ([\w-]+) \| (\d\S+) \|", THIRD_PARTY, re.MULTILINE))
    crates = linked("--features", "bucket")
    assert len(crates) > 100
    assert crates <= listed, "make licences"


def test_the_crates_that_reach_s3_bring_no_second_library_of_cryptography() -> None:
    names = {name for name, _ in linked("--features", "bucket")}
    assert "ring" in names
    assert not names & {"aws-lc-rs", "openssl", "native-tls"}
