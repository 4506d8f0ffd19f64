import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { ROOT } from '../harness/process.ts'

const NODE = `${ROOT}/node_modules/node/bin/node`
const PROGRAM = `
import { createLog, logStderr } from './cli/server-log.ts'
import { logUncaught } from './cli/uncaught.ts'
const log = createLog(process.stdout)
logStderr(log)
logUncaught(log)
setImmediate(() => { throw new TypeError('secret of a caller') })
Promise.reject(new RangeError('another secret'))
setTimeout(() => console.log('continues'), 50)
`

test('errors that nothing handles are logged without their text, and the server continues', () => {
  const { stdout, stderr, status } = spawnSync(NODE, ['--input-type=module', '-e', PROGRAM], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  expect(status).toBe(0)
  const lines = stdout.trim().split('\n')
  expect(lines.pop()).toBe('continues')
  const events = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(events.map(({ level, message, error }) => [level, message, error]).sort()).toEqual([
    ['error', 'uncaught exception', 'TypeError'],
    ['error', 'unhandled rejection', 'RangeError'],
  ])
  expect(stdout).not.toContain('secret')
})
