"""What an administrator does whose broker's disk has lost something: tries, checks, salvages."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sharecore.storage.damage import salvage, survey

if TYPE_CHECKING:
    from tests.simulation.world import World

_WRONG = "(?:is damaged|does not match its checksum)"
_NAMED = re.compile(rf"([\w.-]+)( is damaged.*|: .* {_WRONG}.*); `sharecore store check")


def _nobody(done: int, total: int) -> None:
    """Nobody waits for how far it is."""


async def recovered(world: World) -> None:
    """The broker comes up with what is left, or says clearly what is damaged; then the rest is salvaged."""
    machine, story = world.machine, world.story
    machine.kill(power=True)
    world.auditor.harmed()
    with tempfile.TemporaryDirectory() as place:
        damaged, whole = Path(place, "damaged"), Path(place, "whole")
        damaged.mkdir()
        for name, content in machine.disk.files():
            (damaged / name).write_bytes(content)
        problems = survey(damaged, _nobody).problems
        story.tell("administrator", f"checks the disk: {len(problems)} problems")
        refusal = await machine.tried()
        if refusal is not None:
            named = _NAMED.search(str(refusal))
            if named is None:
                story.broken("unclear refusal", f"{type(refusal).__name__}: {refusal}")
                return
            story.tell("broker", f"does not start: {''.join(named.groups())}")
            if not problems:
                story.broken("refusal without damage", str(refusal))
                return
        if problems:
            machine.kill(power=False)
            lost = salvage(damaged, whole, _nobody).lost
            story.tell(
                "administrator",
                f"salvages the rest; {sum(s.last - s.first + 1 for s in lost)} records are lost",
            )
            files = sorted(path for path in whole.iterdir() if path.name != "lock")
            machine.disk.replace([(path.name, path.read_bytes()) for path in files])
    machine.harmed = False
    await machine.until_up()
    if problems and not machine.failures:
        # the catalog may be lost
        await world.set_up()
    if not machine.failures:
        await world.grow()
    world.auditor.repaired(salvaged=bool(problems))
