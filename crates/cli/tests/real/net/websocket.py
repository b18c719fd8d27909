import base64, hashlib, os, socket, struct, sys

name, port = sys.argv[1], int(sys.argv[2])
key = base64.b64encode(os.urandom(16)).decode()
connection = socket.create_connection((name, port), timeout=20)
request = ["GET /echo HTTP/1.1", f"Host: {name}", "Upgrade: websocket", "Connection: Upgrade",
           f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", ""]
connection.sendall("\r\n".join(request).encode())
stream = connection.makefile("rb")
assert stream.readline().startswith(b"HTTP/1.1 101"), "not switched"
headers = {}
while (line := stream.readline().strip()):
    field, _, value = line.decode().partition(":")
    headers[field.lower()] = value.strip()
expected = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
assert headers["sec-websocket-accept"] == expected, headers
mask = os.urandom(4)
text = bytes(letter ^ mask[at % 4] for at, letter in enumerate(b"hello"))
connection.sendall(b"\x81" + bytes([0x80 | len(text)]) + mask + text)
first, length = struct.unpack("BB", stream.read(2))
print("echo of", stream.read(length).decode())
