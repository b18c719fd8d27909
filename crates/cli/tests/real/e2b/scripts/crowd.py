"""So many sandboxes at once: each made, used and killed."""

import asyncio
import sys

from e2b import AsyncSandbox, SandboxQuery

COUNT = int(sys.argv[1])
MARK = {"topic": "crowd"}


async def live(number, all_made):
    sandbox = await AsyncSandbox.create(timeout=300, metadata={**MARK, "number": str(number)})
    await sandbox.files.write("mine", str(number))
    # All of them live at the same time.
    await all_made.wait()
    done = await sandbox.commands.run("cat mine; ls /home/user | wc -l")
    assert done.stdout == f"{number}1\n", done
    assert await sandbox.files.read("mine") == str(number)
    assert await sandbox.kill()
    return sandbox.sandbox_id


async def listed():
    ids = set()
    paginator = AsyncSandbox.list(query=SandboxQuery(metadata=MARK))
    while paginator.has_next:
        ids |= {info.sandbox_id for info in await paginator.next_items()}
    return ids


async def main():
    all_made = asyncio.Barrier(COUNT)
    ids = await asyncio.gather(*(live(number, all_made) for number in range(COUNT)))
    assert len(set(ids)) == COUNT
    assert await listed() == set()


asyncio.run(main())
