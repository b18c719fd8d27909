# What overlayfs reads from its layers, set from inside.
os.makedirs("/tmp/crafted/deep", exist_ok=True)
for space in ("trusted", "user"):
    for name, value in (("redirect", b"/etc"), ("opaque", b"y"), ("metacopy", b""), ("origin", b"\0")):
        attempt(f"{space}.overlay.{name}", lambda: os.setxattr("/tmp/crafted/deep", f"{space}.overlay.{name}", value))
