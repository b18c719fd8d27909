"""What a sandbox may reach, by E2B's own lists. Beyond the daemon there is a world of the test's own, with `public.test` in it."""

import e2b
from client import Sandbox, has, refused, takes
from e2b import CommandExitException

FETCH = "python3 -c \"import urllib.request as r; print(r.urlopen('http://{}/', timeout=20).read().decode())\""


def reaches(sandbox, host):
    try:
        return sandbox.commands.run(FETCH.format(host)).stdout.strip()
    except CommandExitException:
        return None


PUBLIC = "93.184.216.34:80"
everything = Sandbox.create(timeout=120)
assert reaches(everything, "public.test") == PUBLIC
assert reaches(everything, "93.184.216.34") == PUBLIC
# This machine and private networks are nobody's internet.
for host in ("10.77.0.1:5353", "127.0.0.1:7070", "private.test", "host"):
    assert reaches(everything, host) is None, host
assert everything.kill()

nothing = Sandbox.create(timeout=120, allow_internet_access=False)
for host in ("public.test", "93.184.216.34"):
    assert reaches(nothing, host) is None, host
assert getattr(nothing.get_info(), "allow_internet_access", False) is False
if has("update_network"):
    nothing.update_network({"allow_out": ["public.test"], "deny_out": ["0.0.0.0/0"]})
    assert reaches(nothing, "public.test") == PUBLIC
    assert reaches(nothing, "six.test") is None and reaches(nothing, "93.184.216.35") is None
    assert "public.test" in str(nothing.get_info().network), nothing.get_info()
    # All of it is replaced.
    nothing.update_network({"allow_out": ["93.184.216.35"], "deny_out": ["0.0.0.0/0"]})
    assert reaches(nothing, "public.test") is None and reaches(nothing, "93.184.216.35")
    nothing.update_network({"deny_out": ["93.184.216.35"]})
    assert reaches(nothing, "public.test") == PUBLIC and reaches(nothing, "93.184.216.35") is None
    nothing.update_network({"allow_internet_access": False})
    assert reaches(nothing, "public.test") is None
    refused(Exception, nothing.update_network, {"allow_out": ["not a name"]})
assert nothing.kill()

some = Sandbox.create(timeout=120, network={"allow_out": ["public.test", "93.184.216.35/32"], "deny_out": ["0.0.0.0/0"]})
assert reaches(some, "public.test") == PUBLIC and reaches(some, "93.184.216.35") == "93.184.216.35:80"
assert reaches(some, "six.test") is None
told = str(some.get_info())
assert "public.test" in told or not hasattr(some.get_info(), "network"), told
# What is made of it has lists of its own, and a paused one keeps them.
if has("pause"):
    some.pause()
    some.connect()
    assert reaches(some, "public.test") == PUBLIC and reaches(some, "six.test") is None
if has("fork"):
    [fork] = some.fork()
    assert reaches(fork, "public.test") == PUBLIC and reaches(fork, "six.test") is None
    assert fork.kill()
assert some.kill()
