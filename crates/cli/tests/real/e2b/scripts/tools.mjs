// What all scripts in JavaScript use.

import assert from 'node:assert/strict'

export { assert }

/** What a call says that has to be refused. */
export async function refused(call, pattern = /./) {
  let answer
  try {
    answer = await call()
  } catch (error) {
    assert.match(String(error.message ?? error), pattern)
    return error
  }
  assert.fail(`it was not refused: ${JSON.stringify(answer)}`)
}

export async function until(what, look, patience = 20_000) {
  const deadline = Date.now() + patience
  for (;;) {
    const found = await look()
    if (found) return found
    assert.ok(Date.now() < deadline, `waited in vain for: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

export async function pages(paginator) {
  const found = []
  while (paginator.hasNext) found.push(...(await paginator.nextItems()))
  return found
}

/** Ends the process: connections that are kept open would hold it. */
export function done() {
  process.exit(0)
}
