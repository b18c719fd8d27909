"""What zeno has not is refused with what it is, and what is wrong is said to be wrong."""

import e2b
from client import Sandbox, refused, takes
from e2b import AuthenticationException

create = e2b.Sandbox.create
said = refused(Exception, Sandbox.create, template="no-such-template")
assert "404" in said and "no-such-template" in said and "base" in said and "code-interpreter-v1" in said, said
if takes(create, "mcp"):
    assert "mcp" in refused(Exception, Sandbox.create, template="base", mcp={"exa": {"apiKey": "x"}}).lower()
if takes(create, "volume_mounts"):
    assert "volumes" in refused(Exception, Sandbox.create, volume_mounts={"/data": "some"})
if takes(create, "iam"):
    tokens = {"tokens": {"aws": {"audience": "a", "token_type": "JWT-SVID"}}}
    assert "identities" in refused(Exception, Sandbox.create, iam=tokens)
for network, word in [
    ({"rules": {"a.example": [{"transform": {"headers": {"x": "y"}}}]}}, "rules"),
    ({"egress_proxy": {"address": "proxy.example:1080"}}, "egressProxy"),
    ({"allow_out": ["host"]}, "host"),
    ({"allow_out": ["not a name"]}, "not"),
]:
    if not takes(create, "network"):
        continue
    try:
        sandbox = Sandbox.create(network=network)
    except TypeError:
        # This release does not know the field.
        continue
    except Exception as error:
        assert word in str(error), error
    else:
        # A release that leaves out what it does not know never sent it.
        assert "network" not in str(sandbox.get_info()) or word not in str(sandbox.get_info()), network
        sandbox.kill()
if hasattr(e2b, "Template"):
    template = e2b.Template().from_base_image()
    said = refused(Exception, e2b.Template.build, template, alias="mine")
    assert "zeno" in said, said
# Without the daemon's key nothing is done.
for key in ("e2b_" + "0" * 64, "e2b_" + "0" * 40):
    refused(AuthenticationException, Sandbox.create, api_key=key)
# What could not be made has left nothing.
sandbox = Sandbox.create(secure=False) if takes(create, "secure") else Sandbox.create()
assert sandbox.commands.run("echo still here").stdout == "still here\n"
assert sandbox.kill()
