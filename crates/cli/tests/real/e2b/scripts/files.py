"""Files: written, read, listed, moved, removed, in every form the SDK has."""

import io
import os

import e2b
from client import VERSION, Sandbox, refused, takes
from e2b import FileType

FILES = e2b.sandbox_sync.filesystem.filesystem.Filesystem
NotFound = getattr(e2b, "FileNotFoundException", e2b.NotFoundException)
sandbox = Sandbox.create(timeout=300)
files = sandbox.files
run = sandbox.commands.run

# Text, bytes, nothing, streams.
info = files.write("text", "hällo\n")
assert (info.name, info.path) == ("text", "/home/user/text"), info
assert files.read("text") == "hällo\n" == files.read("/home/user/text") == files.read("~/text")
assert run("stat -c '%U %a' text; cat text").stdout.endswith("hällo\n")
assert run("stat -c %U text").stdout == "user\n"
every = bytes(range(256)) * 1000
files.write("bytes", every)
assert bytes(files.read("bytes", format="bytes")) == every
assert run("sha256sum bytes").stdout.split()[0] == __import__("hashlib").sha256(every).hexdigest()
files.write("empty", "")
assert files.read("empty") == "" and bytes(files.read("empty", format="bytes")) == b""
assert files.get_info("empty").size == 0
large = os.urandom(1 << 20) * 24
files.write("large", io.BytesIO(large))
assert b"".join(bytes(piece) for piece in files.read("large", format="stream")) == large
assert files.get_info("large").size == len(large)
files.write("from-text", io.StringIO("a text stream\n"))
assert files.read("from-text") == "a text stream\n"
files.write("text", "shorter")
assert files.read("text") == "shorter"
if takes(FILES.write, "gzip"):
    files.write("zipped", "z" * 100_000, gzip=True, **({"use_octet_stream": True} if takes(FILES.write, "use_octet_stream") else {}))
    assert files.read("zipped") == "z" * 100_000
    assert files.read("zipped", gzip=True) == "z" * 100_000
    assert run("head -c 3 zipped").stdout == "zzz"
if takes(FILES.write, "use_octet_stream"):
    files.write("octets", every, use_octet_stream=True)
    assert bytes(files.read("octets", format="bytes")) == every

# Several at once, wherever, with folders made on the way.
written = files.write_files(
    [
        {"path": "deep/er/one", "data": "1"},
        {"path": "/home/user/deep/two", "data": b"2"},
        {"path": "deep/with space & ü%20.txt", "data": io.BytesIO(b"3")},
        {"path": "/tmp/four", "data": "4"},
    ]
)
assert [entry.path for entry in written] == [
    "/home/user/deep/er/one",
    "/home/user/deep/two",
    "/home/user/deep/with space & ü%20.txt",
    "/tmp/four",
], written
assert files.read("deep/with space & ü%20.txt") == "3" and files.read("/tmp/four") == "4"
assert files.write_files([]) == []
assert run("stat -c %U deep/er deep/er/one").stdout == "user\nuser\n"

# Lists.
# Old releases leave out links that lead nowhere.
DEEP = ["deep/er", "deep/link", "deep/none", "deep/two", "deep/with space & ü%20.txt"]
DEEP = DEEP if VERSION < (2, 45) else ["deep/broken", *DEEP]
names = lambda *words, **options: sorted(entry.path.removeprefix("/home/user/") for entry in files.list(*words, **options))
run("ln -s two deep/link; ln -s /nowhere deep/broken; mkdir deep/none")
assert names("deep") == DEEP, names("deep")
if takes(FILES.list, "depth"):
    assert "deep/er/one" in names("deep", depth=2) and "deep/er/one" not in names("/home/user", depth=2)
    assert "deep/er/one" in names(".", depth=3)
    refused(Exception, files.list, "deep", depth=0)
assert files.list("deep/none") == []
refused(NotFound, files.list, "no/such/folder")
refused(Exception, files.list, "deep/two")
kinds = {entry.name: entry.type for entry in files.list("deep")}
assert (kinds["two"], kinds["er"]) == (FileType.FILE, FileType.DIR), kinds

# Info and existence.
run("chmod 640 deep/two")
info = files.get_info("deep/two")
assert (info.name, info.type, info.path, info.size) == ("two", FileType.FILE, "/home/user/deep/two", 1), info
assert (info.mode & 0o777, info.permissions, info.owner) == (0o640, "-rw-r-----", "user"), info
assert info.modified_time.year > 2000, info
link = files.get_info("deep/link")
assert link.symlink_target in ("two", "/home/user/deep/two"), link
assert files.get_info("deep").type == FileType.DIR
refused(NotFound, files.get_info, "nope")
assert files.exists("deep") and files.exists("deep/two") and not files.exists("deep/three")

# Folders, names, ends.
assert files.make_dir("new/er/folder") and not files.make_dir("new/er/folder")
assert files.exists("new/er/folder")
refused(Exception, files.make_dir, "deep/two")
moved = files.rename("deep/two", "new/zwei")
assert (moved.path, moved.name) == ("/home/user/new/zwei", "zwei"), moved
assert files.read("new/zwei") == "2" and not files.exists("deep/two")
refused(NotFound, files.rename, "deep/two", "new/drei")
files.rename("new", "old")
assert files.read("old/zwei") == "2"
files.remove("old/zwei")
files.remove("old")
assert not files.exists("old")
refused(NotFound, files.read, "old/zwei")
refused(Exception, files.read, "deep")
refused(Exception, files.write, "deep", "a folder stands there")
refused(Exception, files.write, "text/below", "a file stands there")

# As another user.
assert files.read("/home/user/text", user="user") == "shorter"
refused(Exception, files.read, "text", user="nobody-of-this-name")
run("mkdir closed; echo secret > closed/file; chmod 700 closed")

# Metadata, where the release has them.
if takes(FILES.write, "metadata"):
    files.write("noted", "x", metadata={"author": "ada", "run": "7"})
    assert files.get_info("noted").metadata == {"author": "ada", "run": "7"}, files.get_info("noted")
    files.write("plain", "x")
    assert not files.get_info("plain").metadata

# What is written in one is in no other.
other = Sandbox.create(timeout=60)
assert not other.files.exists("/home/user/text") and not other.files.exists("/tmp/four")
assert other.kill() and sandbox.kill()
