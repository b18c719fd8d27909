"""A client of the benchmark's service. Each line of standard input is an order; its time in seconds is the answer."""

import socket
import struct
import sys
import time

# Once, as any client that keeps what it was told: the gateway's cost per connection is what is measured.
TO = socket.getaddrinfo(sys.argv[1], int(sys.argv[2]), type=socket.SOCK_STREAM)[0][4]


def connect():
    connection = socket.create_connection(TO, timeout=60)
    assert connection.recv(1) == b"!"
    return connection


def download(count):
    with connect() as connection:
        connection.sendall(struct.pack("!Q", count))
        buffer, left = bytearray(1 << 20), count
        while left:
            length = connection.recv_into(buffer)
            assert length, f"ended {left} bytes too early"
            left -= length


def many(count):
    connections = [socket.socket() for _ in range(count)]
    for connection in connections:
        connection.settimeout(60)
        connection.connect(TO)
    for connection in connections:
        assert connection.recv(1) == b"!"
        connection.sendall(struct.pack("!Q", 1))
    for connection in connections:
        assert connection.recv(1) == b"\0"
        connection.close()


for line in sys.stdin:
    kind, *count = line.split()
    began = time.perf_counter()
    {"connect": lambda: connect().close(), "download": download, "many": many}[kind](*map(int, count))
    print(time.perf_counter() - began, flush=True)
