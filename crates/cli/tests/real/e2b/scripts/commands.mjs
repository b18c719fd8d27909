// Commands and terminals.

import { CommandExitError, Sandbox, TimeoutError } from 'e2b'
import { assert, done, refused, until } from './tools.mjs'

const sandbox = await Sandbox.create({ timeoutMs: 300_000, envs: { GIVEN: 'by create' } })
const { commands, pty } = sandbox
const out = async (line, options) => (await commands.run(line, options)).stdout

const ended = await commands.run("echo out; echo err >&2; printf 'no newline'")
assert.deepEqual([ended.stdout, ended.stderr, ended.exitCode], ['out\nno newline', 'err\n', 0])
for (const code of [1, 77, 255]) {
  const error = await refused(() => commands.run(`echo said; exit ${code}`))
  assert.ok(error instanceof CommandExitError)
  assert.deepEqual([error.exitCode, error.stdout], [code, 'said\n'])
}
const told = []
await commands.run('for i in 1 2 3; do echo $i; echo e$i >&2; sleep 0.05; done', {
  onStdout: text => { told.push(text) },
  onStderr: text => { told.push(text) },
})
assert.deepEqual(told.join('').split('\n').sort(), ['', '1', '2', '3', 'e1', 'e2', 'e3'])
assert.equal((await out('head -c 5000000 /dev/zero | tr "\\0" x')).length, 5_000_000)
assert.equal(await out(`python3 -c "import sys; sys.stdout.write('äöü€😀' * 100000)"`), 'äöü€😀'.repeat(100_000))

assert.equal(await out('echo $GIVEN $HOME $USER; pwd'), 'by create /home/user user\n/home/user\n')
assert.equal(await out('echo $GIVEN $MORE; pwd', { envs: { GIVEN: 'by run', MORE: 'ä b' }, cwd: '/tmp' }), 'by run ä b\n/tmp\n')
await refused(() => out('pwd', { cwd: '/no/such/folder' }), /\/no\/such\/folder/)
assert.equal(await out('whoami', { user: 'user' }), 'user\n')
await refused(() => out('whoami', { user: 'nobody-of-this-name' }))

const cat = await commands.run('cat; echo end', { background: true, stdin: true })
await commands.sendStdin(cat.pid, 'one\nzwei ü\n')
await commands.closeStdin(cat.pid)
assert.equal((await cat.wait()).stdout, 'one\nzwei ü\nend\n')

const sleeper = await commands.run('sleep 1000', { background: true, cwd: '/tmp' })
const process = (await commands.list()).find(process => process.pid === sleeper.pid)
assert.deepEqual([process.cmd, process.args.at(-1), process.cwd], ['/bin/bash', 'sleep 1000', '/tmp'])
assert.equal(await commands.kill(sleeper.pid), true)
await refused(() => sleeper.wait())
await until('it to be gone', async () => !(await commands.kill(sleeper.pid)))

const writer = await commands.run('while [ ! -e go ]; do sleep 0.02; done; echo first; exit 5', { background: true })
const joined = await commands.connect(writer.pid)
await out('touch go')
for (const handle of [writer, joined]) {
  const error = await refused(() => handle.wait())
  assert.deepEqual([error.exitCode, error.stdout], [5, 'first\n'])
}
const left = await commands.run('sleep 0.3; echo done > left', { background: true })
await left.disconnect()
await until('the command to end by itself', async () => (await out('cat left 2>/dev/null || true')) === 'done\n')
assert.ok((await refused(() => commands.run('sleep 100', { timeoutMs: 1_000 }))) instanceof TimeoutError)
const many = await Promise.all([...Array(20).keys()].map(number => out(`sleep 0.1; echo ${number}`)))
assert.deepEqual(many, [...Array(20).keys()].map(number => `${number}\n`))

// A terminal.
let shown = ''
const decoder = new TextDecoder()
const onData = data => { shown += decoder.decode(data, { stream: true }) }
const type = (terminal, text) => pty.sendInput(terminal.pid, new TextEncoder().encode(text))
const terminal = await pty.create({ cols: 100, rows: 30, onData, cwd: '/tmp', envs: { MORE: 'variables' }, timeoutMs: 60_000 })
await type(terminal, 'echo "[$TERM|$GIVEN|$MORE|$(pwd)|$(tput cols)x$(tput lines)]"\n')
await until('the terminal', () => shown.includes('[xterm-256color|by create|variables|/tmp|100x30]'))
await pty.resize(terminal.pid, { cols: 133, rows: 50 })
await type(terminal, 'stty size\n')
await until('the size', () => shown.includes('50 133'))
if (pty.connect) {
  let heard = ''
  const second = await pty.connect(terminal.pid, { onData: data => { heard += new TextDecoder().decode(data) } })
  assert.equal(second.pid, terminal.pid)
  await type(terminal, 'echo heard-$((1+1))\n')
  await until('the other to hear', () => heard.includes('heard-2'))
}
await type(terminal, 'exit 7\n')
assert.equal((await refused(() => terminal.wait())).exitCode, 7)
const killed = await pty.create({ cols: 80, rows: 24, onData })
assert.equal(await pty.kill(killed.pid), true)
await until('it to be gone', async () => !(await pty.kill(killed.pid)))
assert.equal(await sandbox.kill(), true)
done()
