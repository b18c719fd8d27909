"""A WebSocket by hand: shakes hands, says one word, and prints what comes back."""

import os
import socket
import ssl
import sys

host, port = sys.argv[1], int(sys.argv[2])
stream = ssl.create_default_context().wrap_socket(socket.create_connection((host, port), timeout=20), server_hostname=host)
stream.sendall(
    f"GET /v1/socket HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
)
head = b""
while not head.endswith(b"\r\n\r\n"):
    head += stream.recv(1)
word, mask = b"hello", os.urandom(4)
stream.sendall(bytes([0x81, 0x80 | len(word)]) + mask + bytes(letter ^ mask[place % 4] for place, letter in enumerate(word)))
frame = stream.recv(100)
echoed = bytes(letter ^ frame[2 + place % 4] for place, letter in enumerate(frame[6:]))
if sys.argv[3:] == ["stay"]:
    print("open", flush=True)
    try:
        stream.settimeout(None)
        stream.recv(100)
    except OSError:
        pass
    print("ended")
    sys.exit()
print(head.split(b"\r\n")[0].decode(), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head, echoed.decode())
