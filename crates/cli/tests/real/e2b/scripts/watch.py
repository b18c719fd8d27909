"""Watching folders: asked for again and again by the blocking SDK, told by the other."""

import e2b
from client import KIND, Sandbox, refused, takes, until
from e2b import FilesystemEventType as Type

FILES = e2b.sandbox_sync.filesystem.filesystem.Filesystem
sandbox = Sandbox.create(timeout=120)
files = sandbox.files
files.make_dir("watched/inner")
files.write("watched/before", "1")


class Watched:
    """Everything that was told of a folder so far."""

    def __init__(self, path, **options):
        self.events = []
        if KIND == "async":
            self.handle = files.watch_dir(path, on_event=self.events.append, **options)
        else:
            self.handle = files.watch_dir(path, **options)

    def told(self):
        if KIND != "async":
            self.events += self.handle.get_new_events()
        return {(event.name, event.type) for event in self.events}

    def hear(self, name, kind):
        until(f"{kind} of {name}; told: {self.events}", lambda: (name, kind) in self.told())


watched = Watched("watched")
files.write("watched/new", "1")
watched.hear("new", Type.CREATE)
watched.hear("new", Type.WRITE)
sandbox.commands.run("echo more >> watched/before; chmod 600 watched/before")
watched.hear("before", Type.WRITE)
watched.hear("before", Type.CHMOD)
files.rename("watched/new", "watched/named")
watched.hear("new", Type.RENAME)
watched.hear("named", Type.CREATE)
files.remove("watched/named")
watched.hear("named", Type.REMOVE)
# Not recursive: what is deeper is not told.
files.write("watched/inner/deep", "1")
files.write("watched/last", "1")
watched.hear("last", Type.CREATE)
assert not [name for name, _ in watched.told() if "deep" in name], watched.events
watched.handle.stop()
count = len(watched.events)
files.write("watched/after", "1")

if takes(FILES.watch_dir, "recursive"):
    watched = Watched("/home/user/watched", recursive=True)
    files.write("watched/inner/deeper", "1")
    watched.hear("inner/deeper", Type.CREATE)
    files.make_dir("watched/made/later")
    until("the new folder to be watched", lambda: ("made", Type.CREATE) in watched.told())

    def seen_below():
        sandbox.commands.run("date +%N > watched/made/later/file")
        return [name for name, _ in watched.told() if name == "made/later/file"]

    until("what is in a folder that is new", seen_below)
    watched.handle.stop()

refused(Exception, Watched, "no/such/folder")
refused(Exception, Watched, "watched/before")
assert sandbox.kill()
