"""Tries a wheel as its first user would: a fresh environment, no compiler, a broker, a record there and back.

    python packaging/try_wheel.py dist/release/sharecore-*.whl

Cargo, rustc and C compilers are not on the PATH of what runs here, and pip may take wheels alone. Prints how
long the broker took to its first answer, by the clock and of the CPU, which tell apart a slow start
and a busy machine.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STARTS = 5
COMPILERS = ("cargo", "rustc", "cc", "gcc", "clang", "maturin", "zig")


def without_compilers(home: Path) -> dict[str, str]:
    """Return an environment in which nothing can be compiled; pip's own settings stay."""
    kept = {
        name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP", "LANG"))
    }
    return kept | {"HOME": str(home), "PATH": str(home / "env/bin"), "PIP_ONLY_BINARY": ":all:"}


def run(*command: str | Path, env: dict[str, str]) -> str:
    """Run a command; give what it printed, and end the try where it fails."""
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    if ended.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def install(home: Path, extras: str, wheel: Path, env: dict[str, str]) -> None:
    """Installs the wheel and what some of its extras need."""
    requirement = f"sharecore[{extras}] @ {wheel.as_uri()}"
    run(home / "env/bin/python", "-m", "pip", "install", "-q", requirement, env=env)


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def first_answer(port: int) -> None:
    """Wait until ApiVersions is answered."""
    request = struct.pack(">hhih", 18, 0, 1, -1)
    deadline = time.monotonic() + 60
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=60) as peer:
                peer.sendall(struct.pack(">i", len(request)) + request)
                if peer.recv(4):
                    return
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.002)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def serve(program: Path, home: Path, env: dict[str, str]) -> tuple[subprocess.Popen[bytes], int, float]:
    """Return a broker that has answered: its process, its port, and the seconds that it took."""
    port = free_port()
    began = time.monotonic()
    process = subprocess.Popen(
        [program, "serve", "--host", "127.0.0.1", "--port", str(port), "--data-dir", home / "data"],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    first_answer(port)
    return process, port, time.monotonic() - began


def main() -> None:
    """Try the wheel, and say what it saw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--start-max", type=float, metavar="SECONDS", help="fail where a start takes longer")
    arguments = parser.parse_args()
    wheel = arguments.wheel.resolve()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        env = without_compilers(home)
        run(sys.executable, "-m", "venv", home / "env", env=dict(os.environ))
        program = home / "env/bin/sharecore"
        install(home, "broker", wheel, env)
        found = [name for name in COMPILERS if (home / "env/bin" / name).exists()]
        assert not found, f"the environment has compilers: {found}"
        print(
            f"{run(program, '--version', env=env).strip()} is installed from {wheel.name}, with no compiler"
        )

        seams = "from sharecore import _core; print({'MemoryDisk', 'call_by_name'} & set(dir(_core)))"
        told = run(home / "env/bin/python", "-c", seams, env=env).strip()
        assert told == "set()", "the wheel has what only tests need: build it without the feature `testing`"

        clock, cpu = [], []
        for _ in range(STARTS):
            process, port, seconds = serve(program, home, env)
            clock.append(seconds)
            cpu.append(cpu_seconds(process.pid))
            process.terminate()
            process.wait()
        print(f"start to first answer, median of {STARTS}: {statistics.median(clock):.2f} s")
        print(f"of the CPU: {statistics.median(cpu):.2f} s")

        install(home, "broker", wheel, env)
        process, port, _ = serve(program, home, env)
        try:
            env["SHARECORE_BOOTSTRAP_SERVER"] = f"127.0.0.1:{port}"
            run(program, "produce", "jobs", "first", env=env)
            options = ("--group", "workers", "--from-beginning", "--max", "1")
            taken = run(program, "consume", "jobs", *options, env=env)
            assert taken == "jobs-0@0  delivery 1  accepted  first\n", taken
        finally:
            process.terminate()
            process.wait()
        print("a record was written, taken and accepted")
        if arguments.start_max is not None and statistics.median(clock) > arguments.start_max:
            sys.exit(f"the start takes more than {arguments.start_max} s")


if __name__ == "__main__":
    main()
