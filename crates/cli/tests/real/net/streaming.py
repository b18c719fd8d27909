"""Reads the beginning of an answer before its end is sent, and sends the end of a request after its beginning has arrived."""

import http.client
import time


def connect():
    return http.client.HTTPSConnection("public.test", 8443, timeout=50)


def get(path):
    connection = connect()
    connection.request("GET", path)
    return connection.getresponse()


answer = get("/v1/stream")
first = answer.readline()
get("/v1/release").read()
print(first, answer.read())

upload = connect()
upload.putrequest("POST", "/v1/upload")
upload.putheader("Content-Type", "text/plain")
upload.putheader("Transfer-Encoding", "chunked")
upload.endheaders()


def send(piece):
    upload.send(b"%x\r\n%s\r\n" % (len(piece), piece))


send(b"a" * 10)
deadline = time.monotonic() + 50
while get("/v1/pieces").read() == b"0":
    assert time.monotonic() < deadline, "the first piece did not arrive alone"
    time.sleep(0.02)
send(b"b" * 200000)
send(b"")
print(upload.getresponse().status)
