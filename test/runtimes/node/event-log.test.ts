/** The log of audit events, where it cannot be written. */
import { spawnSync } from 'node:child_process'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createEventLog } from '../../../src/runtimes/node/event-log.ts'
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

test('a reader that does not read costs bounded memory, and learns how many events are missing', async () => {
  const written: string[] = []
  let writableLength = 0
  const writeEvent = createEventLog({
    get writableLength() {
      return writableLength
    },
    write(text) {
      written.push(text)
      writableLength += text.length
    },
    listenerCount: () => 0,
    once: () => undefined,
  })
  const line = `{"decision":"allow","route":"${'x'.repeat(60_000)}"}`
  for (let turn = 0; turn < 300; turn++) {
    writeEvent(line)
    await nextTurn()
  }
  expect(writableLength).toBeGreaterThan(8_388_608)
  expect(writableLength).toBeLessThan(8_388_608 + 2 * line.length)
  const before = written.length
  expect(before).toBeLessThan(300)

  writableLength = 0
  writeEvent('{"decision":"allow"}')
  await nextTurn()
  const [lost, last] = (written[before] ?? '').trim().split('\n')
  expect(JSON.parse(lost ?? '')).toMatchObject({ reason: 'audit_lost', lost: 300 - before })
  expect(last).toContain('"allow"')
})
