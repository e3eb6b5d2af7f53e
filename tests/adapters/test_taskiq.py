"""Taskiq's own workers on a share group, killed under load."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.adapters.conftest import HAS_LETTERS, Work

APPLICATION = """
import asyncio, os
from taskiq import Context, TaskiqDepends
from sharecore.adapters.taskiq import ShareBroker

names = {"topic": "jobs", "group_id": "jobs", "dead_letters": os.environ.get("LETTERS")}
broker = ShareBroker(os.environ["BOOTSTRAP"], retry_seconds=0.1, **names)

def write(text):
    with open(os.environ["LEDGER"], "a") as ledger:
        ledger.write(text + "\\n")

@broker.task
async def work(number: int, context: Context = TaskiqDepends()) -> None:
    if context.message.labels["sharecore_delivery_count"] > 1:
        write("redelivered")
    await asyncio.sleep(0.02)
    write(str(number))

@broker.task
def work_in_thread(number: int) -> None:
    write(str(number))

@broker.task(retry_on_error=True)
async def fails(name: str, context: Context = TaskiqDepends()) -> None:
    write(f"{name}-{context.message.labels['sharecore_delivery_count']}")
    raise ValueError(name)

@broker.task
async def fails_once(name: str) -> None:
    write(name)
    raise ValueError(name)

@broker.task
async def rejects(name: str, context: Context = TaskiqDepends()) -> None:
    write(name)
    context.reject()

def send(*calls):
    async def main():
        await broker.startup()
        for task, *arguments in calls:
            await task.kicker().with_labels(customer="7").kiq(*arguments)
        await broker.shutdown()
    asyncio.run(main())
"""
COMMAND = ["taskiq", "worker", "jobs:broker", "--workers", "2", "--max-async-tasks", "10"]
JOBS = 600
MakeWork = Callable[[str, list[str]], Work]


def test_no_task_is_lost_when_workers_are_killed(make_work: MakeWork) -> None:
    work = make_work(APPLICATION, COMMAND)
    work.run(f"from jobs import *; send(*((work if n % 2 else work_in_thread, n) for n in range({JOBS})))")
    done = work.finish_through_kills(JOBS)
    assert sum(done.values()) <= JOBS + 3 * 4 * 10, "more was done again than killed workers can have held"
    work.stop()
    print(f"{JOBS} tasks, 3 kills: 0 lost, {sum(done.values()) - JOBS} done twice")


def test_what_fails_is_retried_and_what_is_rejected_is_a_dead_letter(make_work: MakeWork) -> None:
    work = make_work(APPLICATION, COMMAND)
    work.run("from jobs import *; send((fails, 'f'), (fails_once, 'once'), (rejects, 'r'), (work, 1))")
    work.start()
    work.wait(lambda done: {"f-5", "once", "r", "1"} <= set(done))
    letters = [json.loads(each) for each in work.letters(2)]
    if HAS_LETTERS:
        assert {each["task_name"] for each in letters} == {"jobs:fails", "jobs:rejects"}
        assert {each["labels"]["customer"] for each in letters} == {"7"}
    done = work.done()
    assert [name for name in done if name.startswith("f-")] == [f"f-{count}" for count in range(1, 6)]
    assert (done["once"], done["r"]) == (1, 1)
    work.stop()


def test_what_is_no_task_is_rejected_and_an_unknown_one_waits_for_a_worker_that_has_it(
    make_work: MakeWork,
) -> None:
    work = make_work(APPLICATION, COMMAND)
    work.run(
        "from jobs import *\n"
        "@broker.task(task_name='later')\n"
        "async def later(): write('later')\n"
        "send((later,), (work, 1))"
    )
    work.run(
        "import os; from sharecore.client import BlockingProducer\n"
        "with BlockingProducer({'bootstrap.servers': os.environ['BOOTSTRAP']}) as producer:\n"
        "    producer.send('jobs', b'nonsense')"
    )
    work.start()
    work.wait(
        lambda done: done["1"] >= 1 and "no task 'later' here" in work.log() and "is no task" in work.log()
    )
    work.kill_all()
    (work.home / "jobs.py").write_text(
        APPLICATION + "\n@broker.task(task_name='later')\nasync def later(): write('later')\n"
    )
    work.start()
    work.wait(lambda done: done["later"] == 1)
    work.stop()
