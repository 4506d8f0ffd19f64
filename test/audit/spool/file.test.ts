import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { openSpoolFile, type SpoolFile } from '../../../src/runtimes/node/audit/spool/file.ts'

const MIB = 1_048_576
const LARGE = 'x'.repeat(800)

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-spool-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
})

function opened(maxBytes = MIB): SpoolFile {
  const file = openSpoolFile(join(folder, 'spool'), maxBytes)
  onTestFinished(() => file.close())
  return file
}

const eventsOf = (file: SpoolFile) => file.read(1_000_000, 1_000 * MIB).events
const texts = (count: number) => Array.from({ length: count }, (_, at) => `${at} ${LARGE}`)
const never = () => expect.unreachable('no event is old')

/** Appends until the file refuses a batch, and returns the accepted events and the error. */
function filled(file: SpoolFile) {
  const accepted: string[] = []
  for (;;) {
    const batch = texts(100).map((text) => `${accepted.length} ${text}`)
    try {
      file.append(batch, 1)
      accepted.push(...batch)
    } catch (error) {
      return { accepted, error }
    }
  }
}

test('leaves nothing of removed events in its files', () => {
  const file = opened()
  file.append(['an event of alice@home.example', ...texts(40)], 1)
  const content = () =>
    readdirSync(join(folder, 'spool'))
      .map((name) => readFileSync(join(folder, 'spool', name), 'latin1'))
      .join('')
  expect(content()).toContain('alice@home.example')
  file.remove(file.read(100, MIB).lastSeq)
  file.shrink()
  expect(content()).not.toMatch(/alice@home|xxx/)
  file.append(['an event of bob@home.example'], 1)
  file.remove(file.read(1, MIB).lastSeq)
  file.shrink()
  expect(content()).not.toContain('bob@home')
})

test('gives events in the order in which they were stored, also to another process and later', () => {
  const [one, other] = [opened(), opened()]
  one.append(['a', 'b'], 1)
  other.append(['c'], 1)
  one.append(['d'], 1)
  expect(eventsOf(other)).toEqual(['a', 'b', 'c', 'd'])
  one.remove(one.read(2, MIB).lastSeq)
  expect(eventsOf(opened())).toEqual(['c', 'd'])
})

test('a page has at most the given number of events and of bytes, and at least one event', () => {
  const file = opened()
  file.append(['a', 'bb', 'ü', 'dd'], 1)
  expect(file.read(2, MIB).events).toEqual(['a', 'bb'])
  expect(file.read(9, 5).events).toEqual(['a', 'bb', 'ü'])
  expect(file.read(9, 4).events).toEqual(['a', 'bb'])
  expect(file.read(9, 0).events).toEqual(['a'])
})

test('a batch that exceeds the bound is refused completely, and earlier events stay', () => {
  const file = opened()
  const { accepted, error } = filled(file)
  expect(String(error)).toContain('full')
  expect(accepted.length).toBeGreaterThan(500)
  expect(eventsOf(file)).toEqual(accepted)
  expect(eventsOf(opened())).toEqual(accepted)
})

test('another process has the same bound', () => {
  const [one, other] = [opened(), opened()]
  filled(one)
  expect(() => other.append(texts(100), 1)).toThrow('full')
})

test('the space of removed events is used again, and returned to the file system', () => {
  const file = opened()
  const { accepted } = filled(file)
  file.remove(file.read(accepted.length, MIB).lastSeq)
  expect(filled(file).accepted).toHaveLength(accepted.length)
  file.remove(file.read(accepted.length, MIB).lastSeq)
  file.shrink()
  const bytes = (name: string) => statSync(join(folder, 'spool', name)).size
  expect(bytes('events.db') + bytes('events.db-wal')).toBeLessThan(20_000)
})

test('only the user can read the directory and its files', () => {
  const file = opened()
  file.append(['a'], 1)
  const release = file.lock()
  const names = readdirSync(join(folder, 'spool'))
  expect(names).toEqual(expect.arrayContaining(['events.db', 'events.db-wal', 'sender.lock']))
  const modeOf = (...path: string[]) => statSync(join(folder, 'spool', ...path)).mode & 0o777
  expect(names.map((name) => modeOf(name))).toEqual(names.map(() => 0o600))
  expect(modeOf()).toBe(0o700)
  release?.()
})

test('one process at a time has the lock', () => {
  const [one, other] = [opened(), opened()]
  const release = one.lock()
  expect(release).toBeDefined()
  expect(other.lock()).toBeUndefined()
  // Others store events meanwhile.
  other.append(['a'], 1)
  release?.()
  const later = other.lock()
  expect(later).toBeDefined()
  later?.()
})

test('a number is never used again, so that a late removal removes no other event', () => {
  const file = opened()
  file.append(['a'], 1)
  const { lastSeq } = file.read(1, MIB)
  file.remove(lastSeq)
  file.append(['b'], 1)
  file.remove(lastSeq)
  expect(eventsOf(file)).toEqual(['b'])
})

test('old events are replaced by their number, also in a full file', () => {
  const file = opened()
  file.append(['a', 'b'], 1_000)
  file.append(['c'], 2_000)
  expect(file.expire(1_000, never)).toBe(0)
  expect(file.expire(1_001, (count) => `${count} lost`)).toBe(2)
  expect(eventsOf(file)).toEqual(['c', '2 lost'])
  const full = opened(MIB)
  const { accepted } = filled(full)
  expect(full.expire(2, (count) => `${count} lost`)).toBe(accepted.length)
})
