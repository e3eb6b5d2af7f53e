"""Looks at a share group, and sends it back to the beginning of its topics."""

import asyncio
import sys

from sharecore.admin import Admin, Target


async def main(bootstrap: str) -> None:
    async with Admin({"bootstrap.servers": bootstrap}) as admin:
        for listing in await admin.list_groups(states=["Empty"]):
            print(f"{listing.group_id}: {listing.type}, {listing.state}")
        group = await admin.describe("myshare")
        print(f"{group.group_id}: {len(group.members)} members, assignor {group.assignor}")
        for each in await admin.offsets("myshare"):
            print(f"{each.partition}: start offset {each.start_offset}, lag {each.lag}")
        plan = await admin.plan_reset("myshare", Target.earliest())
        for change in plan.changes:
            print(f"{change.partition}: from {change.before} to {change.after}")
        result = await admin.reset(plan)
        print(f"{len(result.done)} partition set, {len(result.failed)} failed")
        await admin.alter_configs("myshare", {"share.record.lock.duration.ms": 60000})
        configs = await admin.configs("myshare")
        print(", ".join(f"{config.name}={config.value}" for config in configs.values() if config.own))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
