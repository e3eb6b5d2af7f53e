"""Dramatiq's own workers on a share group, killed under load."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.adapters.conftest import HAS_LETTERS, Work

APPLICATION = """
import os, time
import dramatiq
from dramatiq.middleware import CurrentMessage
from sharecore.adapters.dramatiq import ShareBroker

broker = ShareBroker(os.environ["BOOTSTRAP"], group_id="jobs", dead_letters=os.environ.get("LETTERS"))
broker.add_middleware(CurrentMessage())
dramatiq.set_broker(broker)

def write(text):
    with open(os.environ["LEDGER"], "a") as ledger:
        ledger.write(f"{text}\\n")

@dramatiq.actor(queue_name="work")
def work(number):
    if CurrentMessage.get_current_message().options["sharecore_delivery_count"] > 1:
        write("redelivered")
    time.sleep(0.05)
    write(number)

@dramatiq.actor(queue_name="work", max_retries=2, min_backoff=100, max_backoff=200)
def fails(name):
    write(name)
    raise ValueError(name)

@dramatiq.actor(queue_name="work", max_retries=0)
def fails_for_good(name):
    write(name)
    raise ValueError(name)
"""
COMMAND = ["dramatiq", "jobs", "--processes", "2", "--threads", "4"]
JOBS = 400
MakeWork = Callable[[str, list[str]], Work]


def test_no_message_is_lost_when_workers_are_killed(make_work: MakeWork) -> None:
    work = make_work(APPLICATION, COMMAND)
    # every tenth through the topic for delays
    work.run(
        "import jobs\n"
        f"for n in range({JOBS}): jobs.work.send_with_options(args=(n,), delay=None if n % 10 else 3_000)\n"
        "jobs.broker.close()"
    )
    done = work.finish_through_kills(JOBS)
    work.stop()
    print(f"{JOBS} messages, 3 kills: 0 lost, {sum(done.values()) - JOBS} done twice")


def test_retries_delays_and_dead_letters(make_work: MakeWork) -> None:
    work = make_work(APPLICATION, COMMAND)
    work.start()
    work.run(
        "import jobs\n"
        "jobs.fails.send('f'); jobs.fails_for_good.send('g')\n"
        "jobs.work.send_with_options(args=('later',), delay=8_000)\n"
        "jobs.work.send(1)\n"
        "jobs.broker._sender().send('work', b'nonsense')\n"
        "jobs.broker.close()"
    )
    done = work.wait(lambda done: done["f"] == 3 and {"g", "1", "later"} <= set(done))
    assert (done["f"], done["g"], done["later"]) == (3, 1, 1), "longer than a lock, and delivered once"
    letters = [each if each == b"nonsense" else json.loads(each)["actor_name"] for each in work.letters(3)]
    assert sorted(map(str, letters)) == (["b'nonsense'", "fails", "fails_for_good"] if HAS_LETTERS else [])
    work.stop()
