"""Create, list with filters and paging, info, timeouts, metrics, kill."""

import datetime
import os

from client import Sandbox, pages, refused, takes, until
from e2b import NotFoundException, SandboxQuery, SandboxState
import e2b

MARK = {"topic": "lists", "process": str(os.getpid()), "a&b=c": "v w/ü%20"}
made = [Sandbox.create(timeout=120, metadata={**MARK, "number": str(number)}) for number in range(5)]
ids = [sandbox.sandbox_id for sandbox in made]
assert len(set(ids)) == 5


def listed(limit=None, metadata=None, **options):
    query = SandboxQuery(metadata=metadata or MARK, **options.pop("query", {}))
    return [[info.sandbox_id for info in page] for page in pages(Sandbox.list(query=query, limit=limit, **options))]


# Newest first, all of them once, page by page.
assert listed() == [ids[::-1]], listed()
assert listed(limit=2) == [[ids[4], ids[3]], [ids[2], ids[1]], [ids[0]]], listed(limit=2)
assert listed(metadata={**MARK, "number": "3"}) == [[ids[3]]]
assert listed(metadata={**MARK, "number": "7"}) == [[]]
assert listed(query={"state": [SandboxState.RUNNING]}) == [ids[::-1]]
assert listed(query={"state": [SandboxState.PAUSED]}) == [[]]
assert listed(query={"state": [SandboxState.PAUSED, SandboxState.RUNNING]}) == [ids[::-1]]
if takes(e2b.Sandbox.list, "order"):
    assert listed(order="asc", limit=3) == [ids[:3], ids[3:]]
if takes(SandboxQuery, "template"):
    assert listed(query={"template": "base"}) == [ids[::-1]]
    assert listed(query={"template": "another"}) == [[]]

# Who removes what a page holds sees them all.
paginator = Sandbox.list(query=SandboxQuery(metadata=MARK), limit=2)
seen = []
while paginator.has_next:
    for info in paginator.next_items():
        seen.append(info.sandbox_id)
        if info.sandbox_id in (ids[4], ids[3]):
            assert Sandbox.kill(info.sandbox_id)
assert seen == ids[::-1], seen
assert listed() == [ids[2::-1]]

sandbox = made[0]
info = sandbox.get_info()
assert (info.sandbox_id, info.template_id, info.state) == (ids[0], "base", SandboxState.RUNNING), info
assert info.metadata == {**MARK, "number": "0"}, info.metadata
assert info.cpu_count >= 1 and info.memory_mb > 0, info
now = datetime.datetime.now(datetime.timezone.utc)
assert abs((info.started_at - now).total_seconds()) < 60 and 0 < (info.end_at - now).total_seconds() <= 120, info
sandbox.set_timeout(1000)
assert 900 < (sandbox.get_info().end_at - now).total_seconds() < 1100
sandbox.set_timeout(300)
assert 200 < (Sandbox.get_info(ids[0]).end_at - now).total_seconds() < 400
# Who joins prolongs, and never shortens.
Sandbox.connect(ids[0], timeout=10)
assert (sandbox.get_info().end_at - now).total_seconds() > 200
sandbox.connect(timeout=2000)
assert (sandbox.get_info().end_at - now).total_seconds() > 1900

sandbox.commands.run("head -c 3000000 /dev/zero > /home/user/zeros")
sandbox.commands.run("sleep 1000", background=True)
[metric] = sandbox.get_metrics()
assert metric.cpu_count >= 1 and metric.cpu_used_pct >= 0 and 0 < metric.mem_used < metric.mem_total, metric
assert 0 <= metric.disk_used < metric.disk_total and metric.timestamp.year > 2000, metric

assert sandbox.is_running()
assert sandbox.kill() and not sandbox.kill() and not Sandbox.kill(ids[0])
assert not sandbox.is_running()
for call in (Sandbox.get_info, Sandbox.connect, lambda id: Sandbox.set_timeout(id, 10)):
    refused(NotFoundException, call, ids[0])
refused(Exception, Sandbox.get_metrics, ids[0])
for strange in ("nope", "i" + "0" * 19, "a-b"):
    assert not Sandbox.kill(strange), strange
    refused(NotFoundException, Sandbox.get_info, strange)
refused(Exception, sandbox.commands.run, "true")

# Its time is over by itself.
brief = Sandbox.create(timeout=1)
until("its end", lambda: not brief.is_running())
assert brief.sandbox_id not in [info.sandbox_id for page in pages(Sandbox.list()) for info in page]

for id in ids[1:3]:
    assert Sandbox.kill(id)
assert listed() == [[]]
