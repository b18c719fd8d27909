"""Snapshots: make, list, make sandboxes of them, delete. Forks."""

import e2b
from client import KIND, VERSION, Sandbox, has, pages, refused, takes
from e2b import NotFoundException

name = f"snapshots-{KIND}-{VERSION[0]}-{VERSION[1]}"
sandbox = Sandbox.create(timeout=120, envs={"GIVEN": "yes"}, metadata={"topic": "snapshots"})
sandbox.files.write("file", "one")


def made_of(template, expected):
    other = Sandbox.create(template=template, timeout=60)
    assert other.sandbox_id != sandbox.sandbox_id
    assert other.files.read("/home/user/file") == expected
    assert other.get_info().template_id == template
    other.files.write("file", "changed in it")
    assert other.kill()


if has("create_snapshot"):
    takes_name = takes(e2b.Sandbox.create_snapshot, "name")
    first = sandbox.create_snapshot(**({"name": name} if takes_name else {}))
    sandbox.files.write("file", "two")
    second = Sandbox.create_snapshot(sandbox.sandbox_id)
    assert sandbox.is_running() and sandbox.files.read("file") == "two"
    made_of(first.snapshot_id, "one")
    made_of(second.snapshot_id, "two")
    if takes_name:
        assert name in [known.removesuffix(":default") for known in first.names], first
        made_of(name, "one")
    mine = {first.snapshot_id, second.snapshot_id}
    assert {info.snapshot_id for page in pages(sandbox.list_snapshots()) for info in page} == mine
    assert mine <= {info.snapshot_id for page in pages(Sandbox.list_snapshots(limit=1)) for info in page}
    said = refused(Exception, Sandbox.create, template="there-is-no-such-template")
    assert "base" in said and (not takes_name or name in said), said
    # What was made of one stays whole without it.
    other = Sandbox.create(template=first.snapshot_id, timeout=60)
    assert Sandbox.delete_snapshot(first.snapshot_id) and not Sandbox.delete_snapshot(first.snapshot_id)
    assert other.files.read("file") == "one" and other.commands.run("echo $GIVEN").stdout == "yes\n"
    other.kill()
    refused(Exception, Sandbox.create, template=first.snapshot_id)
    assert Sandbox.delete_snapshot(second.snapshot_id)
    assert pages(sandbox.list_snapshots()) == [[]]

if has("fork"):
    sandbox.files.write("file", "before the fork")
    forks = sandbox.fork(count=3, timeout=100)
    assert len({fork.sandbox_id for fork in forks} | {sandbox.sandbox_id}) == 4
    for number, fork in enumerate(forks):
        assert fork.files.read("file") == "before the fork"
        assert fork.commands.run("echo $GIVEN; whoami; pwd").stdout == "yes\nuser\n/home/user\n"
        fork.files.write("file", str(number))
    assert [fork.files.read("file") for fork in forks] == ["0", "1", "2"]
    assert sandbox.files.read("file") == "before the fork"
    [one] = Sandbox.fork(sandbox.sandbox_id)
    for fork in [*forks, one]:
        assert fork.kill()
    refused(NotFoundException, Sandbox.fork, one.sandbox_id)
assert sandbox.kill()
