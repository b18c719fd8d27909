// `runCode` of @e2b/code-interpreter.

import { Sandbox } from '@e2b/code-interpreter'
import { assert, done, refused } from './tools.mjs'

const sandbox = await Sandbox.create({ timeoutMs: 300_000 })
await sandbox.runCode('x = 40')
const told = []
const ran = await sandbox.runCode("x += 2\nprint('printed', x)\nx", { onStdout: message => { told.push(message.line) } })
assert.equal(ran.text, '42')
assert.equal(told.join(''), 'printed 42\n')
assert.equal(ran.logs.stdout.join(''), 'printed 42\n')
const rich = await sandbox.runCode("from IPython.display import HTML, display\ndisplay(HTML('<b>bold</b>'))\n{'a': 1}")
assert.equal(rich.results[0].html, '<b>bold</b>')
assert.equal(rich.results.at(-1).text, "{'a': 1}")
assert.equal(rich.results.at(-1).isMainResult, true)
const failed = await sandbox.runCode("raise ValueError('no ä')")
assert.deepEqual([failed.error.name, failed.error.value], ['ValueError', 'no ä'])
assert.equal((await sandbox.runCode('x')).text, '42')
const context = await sandbox.createCodeContext({ cwd: '/tmp' })
assert.equal((await sandbox.runCode('import os; os.getcwd()', { context })).text, '/tmp')
assert.equal((await sandbox.runCode('x', { context })).error.name, 'NameError')
if (sandbox.removeCodeContext) {
  assert.ok((await sandbox.listCodeContexts()).some(known => known.id === context.id))
  await sandbox.removeCodeContext(context)
  await refused(() => sandbox.runCode('1', { context }))
}
assert.equal(await sandbox.kill(), true)
done()
