/** The log of audit events, where it cannot be written. */
import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { ROOT } from '../../harness/process.ts'

const PROGRAM = `
import { createEventLog } from './src/runtimes/node/event-log.ts'
const writeEvent = createEventLog(process.stdout)
let turns = 0
const timer = setInterval(() => {
  writeEvent('{"decision":"allow"}')
  if (++turns < 5) return
  clearInterval(timer)
  setTimeout(() => console.error('continues'), 50)
}, 10)
`

test.each(['/dev/full', '/dev/null'])('events that go to %s end no process', (path) => {
  const script = `exec "$0" --input-type=module -e "$1" > ${path}`
  const { status, stderr } = spawnSync('/bin/sh', ['-c', script, process.execPath, PROGRAM], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  expect({ status, stderr }).toEqual({ status: 0, stderr: 'continues\n' })
})
