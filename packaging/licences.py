"""Writes THIRD-PARTY.md: what is linked into the wheel and into the C library, with its licences' texts.

python packaging/licences.py            # needs cargo; `make licences`
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "THIRD-PARTY.md"
NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE")
PREFERRED = ("MIT", "APACHE")
"""Where a crate may be had under several licences, the shortest text that we may choose."""
TARGETS = ("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl", "aarch64-apple-darwin")
"""For what wheels are published."""


def linked() -> set[tuple[str, str]]:
    """Others' crates that the compiled module holds, and versions; what only builds it is not there."""
    targets = [word for target in TARGETS for word in ("--target", target)]
    shown = subprocess.run(
        [
            "cargo",
            "tree",
            "--locked",
            "-p",
            "sharecore-binding",
            "--features",
            "bucket",
            "-e",
            "normal,no-proc-macro",
            "--prefix",
            "none",
            *targets,
        ],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    crates = (line.split()[:2] for line in shown.splitlines() if line)
    return {
        (name, version.removeprefix("v")) for name, version in crates if not name.startswith("sharecore-")
    }


def packages() -> dict[tuple[str, str], dict[str, Any]]:
    """What cargo knows of each package, by name and version."""
    shown = subprocess.run(
        ["cargo", "metadata", "--locked", "--all-features", "--format-version", "1"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return {(each["name"], each["version"]): each for each in json.loads(shown)["packages"]}


def licence_text(directory: Path) -> str:
    """Return the licence that a crate ships with; its own text, not a template's."""
    files = sorted(
        path
        for path in directory.iterdir()
        if path.is_file() and path.name.upper().replace("-", ".").split(".")[0].split("_")[0] in NAMES
    )
    ranked = [path for word in PREFERRED for path in files if word in path.name.upper()] or files
    return ranked[0].read_text(errors="replace").strip() if ranked else ""


def render() -> str:
    """Return the document."""
    known = packages()
    rows, texts = [], defaultdict(list)
    for name, version in sorted(linked()):
        package = known[name, version]
        rows.append(f"| {name} | {version} | {package['license']} | {package['repository'] or ''} |")
        text = licence_text(Path(package["manifest_path"]).parent)
        texts[text or f"(the crate ships no text: {package['license']})"].append(name)
    parts = [
        "# Third-party software in the compiled parts",
        "`make licences` writes this page. What is linked into `sharecore._core` and `libsharecore`; "
        "the wheel carries the same as a CycloneDX bill of materials in `sboms/` of its metadata.",
        "| crate | version | licence | source |\n|---|---|---|---|\n" + "\n".join(rows),
        "zstd-sys holds Zstandard, Copyright (c) Meta Platforms, Inc. and affiliates, under the BSD licence.",
    ]
    for text, names in sorted(texts.items(), key=lambda item: item[1]):
        parts += [f"## {', '.join(names)}", "```text\n" + text + "\n```"]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    TARGET.write_text(render())
    print(f"{TARGET.name} is written", file=sys.stderr)
