/** The log of audit events, where it cannot be written. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createEventLog, type EventLog } from '../../../src/runtimes/node/event-log.ts'
import { ROOT } from '../../harness/process.ts'

const PROGRAM = `
import { createEventLog } from './src/runtimes/node/event-log.ts'
const { write: writeEvent } = createEventLog(process.stdout)
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

/** An output whose reader reads nothing until `writableLength` is set to 0. */
function createOutput() {
  const output = {
    writableLength: 0,
    error: null as Error | null,
    written: [] as string[],
    write(text: string, written: (error?: Error | null) => void) {
      if (output.error === null) {
        output.written.push(text)
        output.writableLength += text.length
      }
      setImmediate(written, output.error)
    },
    listenerCount: () => 1,
    once: () => undefined,
    /** Returns the numbers of events that the written lines report as lost. */
    reported: () =>
      output.written
        .flatMap((text) => text.trim().split('\n'))
        .map((line) => JSON.parse(line))
        .flatMap(({ reason, lost }) => (reason === 'audit_lost' ? lost : [])),
  }
  return output
}

async function fill(log: EventLog): Promise<void> {
  const line = `{"decision":"allow","route":"${'x'.repeat(60_000)}"}`
  for (let turn = 0; turn < 300; turn++) {
    log.write(line)
    await nextTurn()
  }
}

test('a reader that does not read costs bounded memory, and learns how many events are missing', async () => {
  const output = createOutput()
  const log = createEventLog(output)
  await fill(log)
  expect(output.writableLength).toBeGreaterThan(8_300_000)
  expect(output.writableLength).toBeLessThanOrEqual(8_388_608)
  const before = output.written.length
  expect(log.lost()).toBe(300 - before)

  output.writableLength = 0
  log.write('{"decision":"allow"}')
  await nextTurn()
  const [lost, last] = (output.written[before] ?? '').trim().split('\n')
  expect(JSON.parse(lost ?? '')).toMatchObject({ reason: 'audit_lost', lost: 300 - before })
  expect(last).toContain('"allow"')
  await log.close()
  expect(output.reported()).toEqual([300 - before])
})

test('lost events are reported when no further event follows', async () => {
  const output = createOutput()
  const log = createEventLog(output)
  await fill(log)
  output.writableLength = 0
  await expect.poll(output.reported, { timeout: 20_000 }).toEqual([log.lost()])
})

test('events that a full disk refuses are reported when it has room, with earlier ones', async () => {
  const output = createOutput()
  const log = createEventLog(output)
  output.error = new Error('ENOSPC')
  for (let turn = 0; turn < 3; turn++) {
    log.write('{"decision":"allow"}')
    await nextTurn()
    await nextTurn()
  }
  output.error = null
  await log.close()
  expect(output.reported()).toEqual([3])
  expect(log.lost()).toBe(3)
})

const BUSY = `
import { createEventLog } from './src/runtimes/node/event-log.ts'
const log = createEventLog(process.stdout)
const line = JSON.stringify({ route: 'x'.repeat(60_000) })
for (let turn = 0; turn < 300; turn++) {
  log.write(line)
  await new Promise(setImmediate)
}
console.error('full')
await log.close()
process.exit(0)
`

test('a process that ends has reported what its log lost', async () => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', BUSY], { cwd: ROOT })
  await once(child.stderr, 'data')
  const lines = (await text(child.stdout)).trim().split('\n')
  const { reason, lost } = JSON.parse(lines.at(-1) ?? '')
  expect(reason).toBe('audit_lost')
  expect(lost).toBe(300 - (lines.length - 1))
})
