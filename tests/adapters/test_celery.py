"""Celery's own workers on a share group, killed under load."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.adapters.conftest import HAS_LETTERS, Work

APPLICATION = """
import os, time
from celery import Celery
from celery.exceptions import Reject
import sharecore.adapters.kombu

app = Celery("jobs", broker=f"sharecore://{os.environ['BOOTSTRAP']}")
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_default_queue="jobs",
    task_ignore_result=True,
    broker_transport_options={"group_id": "jobs", "dead_letters": os.environ.get("LETTERS")},
)

def write(text):
    with open(os.environ["LEDGER"], "a") as ledger:
        ledger.write(f"{text}\\n")

@app.task(bind=True)
def work(self, number):
    if self.request.sharecore_delivery_count > 1:
        write("redelivered")
    time.sleep(0.05)
    write(number)

@app.task(bind=True, max_retries=2)
def retries(self, name):
    write(f"{name}-{self.request.retries}")
    raise self.retry(countdown=0.5)

@app.task(bind=True)
def requeues(self, name):
    write(f"{name}-{self.request.sharecore_delivery_count}")
    raise Reject("again", requeue=True)

@app.task
def rejects(name):
    write(name)
    raise Reject("never", requeue=False)

@app.task
def later(name):
    write(name)

@app.task(bind=True)
def dies_once(self):
    write(f"d-{self.request.sharecore_delivery_count}")
    if self.request.sharecore_delivery_count == 1:
        os.kill(os.getpid(), 9)
"""
COMMAND = ["celery", "-A", "jobs", "worker", "--concurrency", "4", "--loglevel", "info"]
JOBS = 400
MakeWork = Callable[[str, list[str]], Work]


def test_no_task_is_lost_when_workers_are_killed(make_work: MakeWork) -> None:
    work = make_work(APPLICATION, COMMAND)
    work.run(f"import jobs\nfor n in range({JOBS}): jobs.work.delay(n)")
    done = work.finish_through_kills(JOBS)
    work.stop()
    print(f"{JOBS} tasks, 3 kills: 0 lost, {sum(done.values()) - JOBS} done twice")


def test_retries_rejects_countdowns_and_lost_processes(make_work: MakeWork) -> None:
    work = make_work(APPLICATION, COMMAND)
    work.start()
    work.run(
        "import jobs\n"
        "jobs.retries.delay('t'); jobs.requeues.delay('q'); jobs.rejects.delay('r'); jobs.dies_once.delay()\n"
        "jobs.later.apply_async(('later',), countdown=8)\n"
        "jobs.work.delay(1)"
    )
    done = work.wait(lambda done: {"t-2", "q-5", "r", "1", "later", "d-2"} <= set(done))
    assert [name for name in done if name.startswith("q-")] == [f"q-{count}" for count in range(1, 6)]
    assert [name for name in done if name.startswith("t-")] == ["t-0", "t-1", "t-2"]
    assert (done["r"], done["later"]) == (1, 1), "longer than a lock, and delivered once"
    work.stop()
    letters = [json.loads(each)["headers"]["task"] for each in work.letters(2)]
    assert sorted(letters) == (["jobs.rejects", "jobs.requeues"] if HAS_LETTERS else [])


def test_remote_control_is_off_and_says_so(make_work: MakeWork) -> None:
    work = make_work(APPLICATION, COMMAND)
    answer = work.run(
        "import jobs\n"
        "try: jobs.app.control.ping(timeout=1)\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    assert "has no fanout exchanges" in answer
