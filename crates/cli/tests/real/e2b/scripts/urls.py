"""Signed URLs, to be given to whoever has no SDK."""

import time
import urllib.error
import urllib.parse
import urllib.request

from client import Sandbox, has

sandbox, other = Sandbox.create(timeout=120), Sandbox.create(timeout=120)
sandbox.files.write("file", "content")
other.files.write("file", "of the other")


def get(url, data=None, headers={}):
    """Status and body."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=data, headers=headers), timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def form(text, name="upload"):
    boundary = "a-boundary"
    lines = [f"--{boundary}", f'Content-Disposition: form-data; name="file"; filename="{name}"', "", text, f"--{boundary}--", ""]
    return "\r\n".join(lines).encode(), {"Content-Type": f"multipart/form-data; boundary={boundary}"}


plain = sandbox.download_url("/home/user/file")
assert get(plain) == (200, b"content")
assert get(sandbox.download_url("file")) == (200, b"content")
assert get(sandbox.download_url("/home/user/nope"))[0] == 404
assert get(sandbox.download_url("/home/user"))[0] == 400
until_later = sandbox.download_url("/home/user/file", use_signature_expiration=100)
assert get(until_later) == (200, b"content")
assert get(sandbox.download_url("/home/user/file", user="user")) == (200, b"content")
assert get(other.download_url("/home/user/file")) == (200, b"of the other")

# A signature is for what it says and for nothing else.
other_path = plain.replace(urllib.parse.quote("/home/user/file", safe=""), urllib.parse.quote("/etc/hostname", safe=""))
assert other_path != plain and get(other_path)[0] in (401, 404), get(other_path)
assert get(plain + "&username=root")[0] in (401, 404)
assert get(plain.replace("signature=v1_", "signature=v1_A"))[0] in (401, 404)
query = urllib.parse.urlsplit(plain)
unsigned = urllib.parse.urlunsplit(query._replace(query=urllib.parse.urlencode({"path": "/home/user/file"})))
assert get(unsigned)[0] in (401, 404)
named = {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": "49983"}
assert get(unsigned, headers=named)[0] == 401
of_other = {**named, "E2b-Sandbox-Id": other.sandbox_id}
assert get(plain, headers=of_other)[0] == 401, "a signature of one sandbox says nothing to another"
body, kind = form("written over")
assert get(plain, body, kind)[0] in (401, 404), "a signature to read is none to write"
longer = urllib.parse.urlsplit(until_later)
pairs = dict(urllib.parse.parse_qsl(longer.query))
pairs["signature_expiration"] = str(int(pairs["signature_expiration"]) + 1000)
assert get(urllib.parse.urlunsplit(longer._replace(query=urllib.parse.urlencode(pairs))))[0] in (401, 404)
brief = sandbox.download_url("/home/user/file", use_signature_expiration=1)
deadline = time.monotonic() + 20
while get(brief)[0] == 200:
    assert time.monotonic() < deadline, "it does not expire"
    time.sleep(0.1)
assert get(brief)[0] in (401, 404)

body, kind = form("uploaded ü")
status, answer = get(sandbox.upload_url("/home/user/up/loaded"), body, kind)
assert status == 200 and b"/home/user/up/loaded" in answer, (status, answer)
assert sandbox.files.read("up/loaded") == "uploaded ü"
status, answer = get(sandbox.upload_url("/home/user/soon", use_signature_expiration=100), body, kind)
assert status == 200 and sandbox.files.read("soon") == "uploaded ü"
assert get(sandbox.upload_url("/home/user/file"))[0] in (401, 404), "a signature to write is none to read"
assert sandbox.files.read("file") == "content"
assert sandbox.kill() and other.kill()
assert get(plain)[0] in (401, 404, 502)
