// Create, list, info, timeouts, pause, snapshots, forks, network, refusals.

import { NotFoundError, Sandbox } from 'e2b'
import { assert, done, pages, refused, until } from './tools.mjs'

const metadata = { topic: 'control.mjs', 'a&b=c': 'v w/ü%20' }
const made = []
for (const number of ['0', '1', '2']) {
  made.push(await Sandbox.create({ timeoutMs: 120_000, metadata: { ...metadata, number }, envs: { GIVEN: 'yes' } }))
}
const ids = made.map(sandbox => sandbox.sandboxId)
const listed = async (query = {}, options = {}) =>
  (await pages(Sandbox.list({ query: { metadata, ...query }, ...options }))).map(info => info.sandboxId)
assert.deepEqual(await listed(), [...ids].reverse())
assert.deepEqual(await listed({}, { limit: 1 }), [...ids].reverse())
assert.deepEqual(await listed({ state: ['paused'] }), [])
assert.deepEqual(await listed({ metadata: { ...metadata, number: '1' } }), [ids[1]])
const first = Sandbox.list({ query: { metadata }, limit: 2 })
assert.equal((await first.nextItems()).length, 2)
assert.equal(first.hasNext, true)

const [sandbox, second, third] = made
const info = await sandbox.getInfo()
assert.equal(info.sandboxId, ids[0])
assert.equal(info.templateId, 'base')
assert.equal(info.state, 'running')
assert.deepEqual(info.metadata, { ...metadata, number: '0' })
assert.ok(info.endAt - info.startedAt <= 121_000 && info.endAt > new Date())
await sandbox.setTimeout(1_000_000)
assert.ok((await sandbox.getInfo()).endAt - Date.now() > 900_000)
await sandbox.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
const [metric] = await sandbox.getMetrics()
assert.ok(metric.cpuCount >= 1 && metric.memUsed > 0 && metric.memTotal > metric.memUsed && metric.diskTotal > 0)

// Pause and resume.
await sandbox.files.write('file', 'kept')
const counter = await sandbox.commands.run('i=0; while :; do i=$((i+1)); echo $i > count; sleep 0.05; done', { background: true, timeoutMs: 0 })
assert.equal(await sandbox.pause(), true)
assert.equal(await sandbox.pause(), false)
assert.equal(await sandbox.isRunning(), false)
assert.deepEqual(await listed({ state: ['paused'] }), [ids[0]])
await refused(() => sandbox.commands.run('true'))
const same = await Sandbox.connect(ids[0], { timeoutMs: 100_000 })
assert.equal(await same.files.read('file'), 'kept')
const count = async () => Number((await same.commands.run('cat count')).stdout)
const before = await count()
await until('it to count on', async () => (await count()) > before)
assert.ok((await same.commands.list()).some(process => process.pid === counter.pid))

// Snapshots and forks.
const snapshot = await sandbox.createSnapshot({ name: 'of-javascript' })
await sandbox.files.write('file', 'changed')
const other = await Sandbox.create(snapshot.snapshotId, { timeoutMs: 60_000 })
assert.equal(await other.files.read('file'), 'kept')
assert.equal((await other.commands.run('echo $GIVEN')).stdout, 'yes\n')
assert.ok((await pages(sandbox.listSnapshots())).some(known => known.snapshotId === snapshot.snapshotId))
await refused(() => Sandbox.create('no-such-template'), /base.*of-javascript/s)
assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), true)
assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), false)
assert.equal(await other.kill(), true)
if (sandbox.fork) {
  const forks = await sandbox.fork({ count: 2, timeoutMs: 60_000 })
  assert.equal(forks.length, 2)
  for (const fork of forks) {
    assert.ok(fork instanceof Sandbox, String(fork))
    assert.equal(await fork.files.read('file'), 'changed')
    await fork.kill()
  }
}

// At the end of its time it stands still and is woken.
const sleepy = await Sandbox.create({ timeoutMs: 2_000, lifecycle: { onTimeout: 'pause', autoResume: true } })
await sleepy.files.write('file', 'kept')
await until('its timeout', async () => (await sleepy.getInfo()).state === 'paused')
assert.equal(await sleepy.files.read('file'), 'kept')
assert.equal((await sleepy.getInfo()).state, 'running')
await sleepy.kill()

// Network, as far as it can be seen without one.
const closed = await Sandbox.create({ timeoutMs: 60_000, allowInternetAccess: false })
await refused(() => closed.commands.run('getent hosts example.com'), /exit status/)
if (closed.updateNetwork) {
  await closed.updateNetwork({ allowOut: ['a.example'], denyOut: ['0.0.0.0/0'] })
  await closed.updateNetwork({ allowInternetAccess: false })
}
await closed.kill()

// What zeno has not.
await refused(() => Sandbox.create({ network: { rules: { 'a.example': [{ transform: { headers: { a: 'b' } } }] } } }), /rules/)
await refused(() => Sandbox.create({ volumeMounts: { '/data': 'some' } }), /volumes/)
await refused(() => Sandbox.create({ apiKey: 'e2b_' + '0'.repeat(64) }), /./)

assert.equal(await second.kill(), true)
assert.equal(await second.kill(), false)
assert.equal(await second.isRunning(), false)
assert.ok((await refused(() => Sandbox.connect(ids[1]))) instanceof NotFoundError)
await refused(() => Sandbox.getInfo(ids[1]))
assert.equal(await Sandbox.kill(ids[2]), true)
assert.equal(await third.isRunning(), false)
assert.equal(await sandbox.kill(), true)
assert.deepEqual(await listed(), [])
done()
