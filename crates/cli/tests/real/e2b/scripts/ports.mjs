// `getHost` with HTTP and a WebSocket, to a server in the sandbox that knows nothing of all this.

import http from 'node:http'
import { Sandbox } from 'e2b'
import WebSocket from 'ws'
import { assert, done, until } from './tools.mjs'

// Nothing but what every Python has: a handshake, and frames that are sent back.
const SERVER = `
import base64, hashlib, socket, sys, threading

def exactly(stream, length):
    data = stream.read(length)
    if len(data) < length: raise EOFError
    return data

def serve(connection):
    stream = connection.makefile('rb')
    headers = {}
    request = stream.readline()
    while (line := stream.readline().strip()):
        name, value = line.decode().split(': ', 1)
        headers[name.lower()] = value
    if 'sec-websocket-key' not in headers:
        body = request.split()[1] + b' of ' + headers['host'].encode()
        connection.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\nConnection: close\\r\\n\\r\\n%s' % (len(body), body))
        connection.close()
        return
    key = hashlib.sha1((headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').encode()).digest()
    connection.sendall(b'HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: ' + base64.b64encode(key) + b'\\r\\n\\r\\n')
    while True:
        kind, length = exactly(stream, 2)
        length &= 127
        if length == 126: length = int.from_bytes(exactly(stream, 2), 'big')
        elif length == 127: length = int.from_bytes(exactly(stream, 8), 'big')
        mask = exactly(stream, 4)
        data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(exactly(stream, length)))
        size = bytes([length]) if length < 126 else b'\\x7e' + length.to_bytes(2, 'big') if length < 65536 else b'\\x7f' + length.to_bytes(8, 'big')
        connection.sendall(bytes([kind]) + size + data)
        if kind & 15 == 8:
            connection.close()
            return

listener = socket.create_server(('127.0.0.1', int(sys.argv[1])))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
`

const sandbox = await Sandbox.create({ timeoutMs: 120_000 })
await sandbox.files.write('server.py', SERVER)
await sandbox.commands.run('exec python3 server.py 3000', { background: true, timeoutMs: 0 })
const host = sandbox.getHost(3000)
// Browsers and curl know that names below localhost are this machine. Node asks whoever resolves names.
const lookup = (_name, options, found) =>
  options.all ? found(null, [{ address: '127.0.0.1', family: 4 }]) : found(null, '127.0.0.1', 4)
const get = path =>
  new Promise((resolve, reject) => {
    const request = http.get(`http://${host}${path}`, { lookup }, async answer => {
      let text = ''
      for await (const piece of answer) text += piece
      resolve([answer.statusCode, text])
    })
    request.on('error', reject)
  })
await until('the server', async () => (await get('/'))[0] === 200)
const [status, text] = await get('/a?b=c')
assert.equal(status, 200)
assert.match(text, /^\/a\?b=c of /)

const socket = new WebSocket(`ws://${host}/socket`, { lookup })
const next = () => new Promise((resolve, reject) => {
  socket.once('message', (data, isBinary) => resolve(isBinary ? data : data.toString()))
  socket.once('error', reject)
  socket.once('close', () => reject(new Error('closed')))
})
await new Promise((resolve, reject) => { socket.once('open', resolve); socket.once('error', reject) })
for (const message of ['hello', 'ä'.repeat(1000), 'x'.repeat(300_000)]) {
  const answer = next()
  socket.send(message)
  assert.equal(await answer, message)
}
const binary = next()
socket.send(Buffer.from([0, 255, 1, 254]))
assert.deepEqual(await binary, Buffer.from([0, 255, 1, 254]))
const closed = new Promise(resolve => socket.once('close', resolve))
socket.close(1000)
await closed

// It ends with the sandbox.
const last = new WebSocket(`ws://${host}/socket`, { lookup })
await new Promise((resolve, reject) => { last.once('open', resolve); last.once('error', reject) })
const cut = new Promise(resolve => { last.once('close', resolve); last.on('error', () => {}) })
await sandbox.kill()
await cut
assert.equal((await get('/'))[0], 502)
done()
