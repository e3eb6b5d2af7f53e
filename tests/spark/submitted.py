"""Jobs as spark-submit starts them, in processes of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyspark
from tests.harness.broker import ROOT
from tests.spark.conftest import Topic

SPARK_HOME = Path(pyspark.__file__).parent
JOB_SECONDS_MAX = 300


def environment(home: Path) -> dict[str, str]:
    """What daemons and jobs run with; a node of a real cluster has `sharecore[spark]` installed."""
    return os.environ | {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(home / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }


def kill(leader: subprocess.Popen[str]) -> None:
    """SIGKILL to the leader of a session and to all that it started; Spark's Python has groups of its own."""
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(int(each.name)) == leader.pid:
                os.kill(int(each.name), signal.SIGKILL)
    leader.wait()


class Job:
    """tests/spark/job.py, handed to spark-submit.

    Args:
        arguments: the job's, beyond where it reads and writes.
        conf: Spark's; `_` in a name stands for a dot.
    """

    def __init__(self, master: str, topic: Topic, home: Path, *arguments: str, **conf: str) -> None:
        self.home = home / "job"
        self._log = home / "job.log"
        settings = {"spark.ui.enabled": "false", "spark.driver.memory": "1g"}
        settings |= {f"spark.{name.replace('_', '.')}": value for name, value in conf.items()}
        places = [topic.broker.bootstrap, topic.name, topic.group, topic.checkpoint, str(self.home)]
        with self._log.open("a") as log:
            self.process = subprocess.Popen(
                [
                    *(str(SPARK_HOME / "bin/spark-submit"), "--master", master),
                    *(f"--conf={name}={value}" for name, value in settings.items()),
                    *(str(ROOT / "tests/spark/job.py"), *places, *arguments),
                ],
                env=environment(home),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def wait(self) -> int:
        """Wait for the end; return the exit status of the JVM, and leave nothing running."""
        try:
            return self.process.wait(JOB_SECONDS_MAX)
        finally:
            kill(self.process)

    def succeed(self) -> None:
        """Wait for the end, which has to be a good one."""
        assert self.wait() == 0, self.read_log()[-4000:]

    def read_log(self) -> str:
        return self._log.read_text(errors="replace")
