from e2b import Sandbox, SandboxQuery
s = Sandbox.create(timeout=60, metadata={"k": "v w"}, envs={"FOO": "bar"})
assert s.commands.run("echo hi $FOO").stdout == "hi bar\n"
try: s.commands.run("exit 3"); assert False
except Exception as e: assert e.exit_code == 3
assert s.files.write("hello.txt", "héllo").path == "/home/user/hello.txt"
assert s.files.read("hello.txt") == "héllo"
s.files.write_files([{"path": "a/b.txt", "data": "1"}, {"path": "/home/user/c.txt", "data": b"2"}])
assert {e.path for e in s.files.list(".", depth=2)} >= {"/home/user/a", "/home/user/a/b.txt"}
assert not s.files.exists("nope") and s.files.make_dir("d") and not s.files.make_dir("d")
s.files.rename("hello.txt", "h2.txt"); s.files.remove("h2.txt")
h = s.commands.run("cat", background=True, stdin=True)
s.commands.send_stdin(h.pid, "abc\n"); s.commands.close_stdin(h.pid); assert h.wait().stdout == "abc\n"
h = s.commands.run("sleep 100", background=True); assert h.pid in [p.pid for p in s.commands.list()]; assert h.kill()
assert s.is_running(); s.set_timeout(100); s.get_info(); s.get_metrics()
p = Sandbox.list(query=SandboxQuery(metadata={"k": "v w"}), limit=1); assert len(p.next_items()) == 1
s.pause(); assert not s.is_running(); s.connect(); assert s.commands.run("echo back").stdout == "back\n"
assert Sandbox.connect(s.sandbox_id).commands.run("echo x").stdout == "x\n"
import urllib.request; assert urllib.request.urlopen(s.download_url("/home/user/c.txt")).read() == b"2"
n = s.create_snapshot(name="s1"); t = Sandbox.create(template=n.snapshot_id); assert t.files.read("c.txt") == "2"; t.kill()
assert Sandbox.delete_snapshot(n.snapshot_id)
assert s.kill() and not s.kill()
