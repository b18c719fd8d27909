// Files, watching, signed URLs.

import { FilesystemEventType, FileType, Sandbox } from 'e2b'
import { assert, done, refused, until } from './tools.mjs'

const sandbox = await Sandbox.create({ timeoutMs: 300_000 })
const { files, commands } = sandbox

const written = await files.write('text', 'hällo\n')
assert.deepEqual([written.name, written.path], ['text', '/home/user/text'])
assert.equal(await files.read('text'), 'hällo\n')
assert.equal((await commands.run('cat text')).stdout, 'hällo\n')
const every = new Uint8Array(256_000).map((_, at) => at % 256)
await files.write('bytes', every.buffer)
assert.deepEqual(Buffer.from(await files.read('bytes', { format: 'bytes' })), Buffer.from(every))
assert.equal((await (await files.read('bytes', { format: 'blob' })).arrayBuffer()).byteLength, every.length)
await files.write('blob', new Blob([every]))
let size = 0
for await (const piece of await files.read('blob', { format: 'stream' })) size += piece.length
assert.equal(size, every.length)
await files.write('empty', '')
assert.equal(await files.read('empty'), '')
await files.write('stream', new Blob(['of a stream']).stream())
assert.equal(await files.read('stream'), 'of a stream')

const several = await files.write([
  { path: 'deep/er/one', data: '1' },
  { path: '/home/user/deep/with space & ü%20.txt', data: '2' },
  { path: '/tmp/three', data: new Blob(['3']) },
])
assert.deepEqual(several.map(entry => entry.path), ['/home/user/deep/er/one', '/home/user/deep/with space & ü%20.txt', '/tmp/three'])
assert.equal(await files.read('deep/with space & ü%20.txt'), '2')
const names = async (...words) => (await files.list(...words)).map(entry => entry.path).sort()
assert.deepEqual(await names('deep'), ['/home/user/deep/er', '/home/user/deep/with space & ü%20.txt'])
assert.ok((await names('.', { depth: 3 })).includes('/home/user/deep/er/one'))
await refused(() => files.list('no/such/folder'))
const info = await files.getInfo('text')
assert.deepEqual([info.name, info.type, info.size, info.owner], ['text', FileType.FILE, 7, 'user'])
assert.ok(info.modifiedTime instanceof Date)
assert.equal((await files.getInfo('deep')).type, FileType.DIR)
assert.equal(await files.exists('text'), true)
assert.equal(await files.exists('nope'), false)
assert.equal(await files.makeDir('made/on/the/way'), true)
assert.equal(await files.makeDir('made/on/the/way'), false)
assert.equal((await files.rename('text', 'made/text')).path, '/home/user/made/text')
await refused(() => files.rename('text', 'made/again'))
await files.remove('made')
assert.equal(await files.exists('made/text'), false)
await refused(() => files.read('made/text'))
await refused(() => files.read('deep'))

// Watching.
await files.makeDir('watched/inner')
const events = []
const handle = await files.watchDir('watched', event => { events.push(`${event.type} ${event.name}`) }, { recursive: true })
await files.write('watched/new', '1')
await files.write('watched/inner/deep', '1')
await files.rename('watched/new', 'watched/named')
await files.remove('watched/named')
for (const [type, name] of [
  [FilesystemEventType.CREATE, 'new'],
  [FilesystemEventType.WRITE, 'new'],
  [FilesystemEventType.CREATE, 'inner/deep'],
  [FilesystemEventType.RENAME, 'new'],
  [FilesystemEventType.CREATE, 'named'],
  [FilesystemEventType.REMOVE, 'named'],
]) {
  await until(`${type} ${name} of ${events}`, () => events.includes(`${type} ${name}`))
}
await handle.stop()
await refused(() => files.watchDir('no/such/folder', () => {}))

// Signed URLs.
await files.write('given', 'to whoever has the URL')
const read = await fetch(await sandbox.downloadUrl('given', { useSignatureExpiration: 100 }))
assert.equal(await read.text(), 'to whoever has the URL')
const forged = (await sandbox.downloadUrl('given')).replace('given', 'empty')
assert.ok([401, 404].includes((await fetch(forged)).status))
const form = new FormData()
form.append('file', new Blob(['uploaded']), 'name')
const put = await fetch(await sandbox.uploadUrl('up/loaded', { useSignatureExpiration: 100 }), { method: 'POST', body: form })
assert.equal(put.status, 200)
assert.equal(await files.read('up/loaded'), 'uploaded')
assert.equal(await sandbox.kill(), true)
done()
