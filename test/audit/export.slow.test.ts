import { mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { publicKeysIn } from '../../cli/checkpoints.ts'
import { readExports } from '../../cli/exports.ts'
import { type ChainPage, verifyChain } from '../../cli/verify.ts'
import { createCheckpointSealer } from '../../src/audit/chain.ts'
import { partOf } from '../../src/audit/chain-export.ts'
import { type ExportBucket, etagOf } from '../../src/audit/r2/chain-export.ts'
import { insertAuditEvents } from '../../src/audit/sql/audit-chain.ts'
import { within } from '../../src/audit/sql/schema.ts'
import { endRetention, exportDue } from '../../src/runtimes/audit/upkeep.ts'
import { sha256Now } from '../../src/runtimes/node/audit/digest.ts'
import { runCli } from '../cli/command-line.ts'
import { generateSigningJwk } from '../features/operators/signing-jwk.ts'
import { IS_LONG } from '../harness/long.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { anEvent } from './event.ts'
import { type AuditStores, describeStores } from './harness.ts'
import { prepare, runAll } from './prepared.ts'
import { rowsIn } from './stored.ts'

const HOUR_MS = 3_600_000
const T0 = Date.parse('2026-01-01T00:00:00.000Z')
const keySet = JSON.stringify({ keys: [generateSigningJwk('audit-1')] })
const keys = publicKeysIn(keySet)
const seal = createCheckpointSealer(JSON.parse(keySet).keys)
const never = new Promise<never>(() => {})
describeStores((start, { isFirst, isD1 }) => {
  /** Defines a test that only a long run repeats on D1, which contains an SQLite and receives the same statements. */
  const onEngines = !isD1 || IS_LONG ? test : undefined
  /** Defines a test of files, which do not depend on the store: only a long run repeats it on each store. */
  const onFirst = isFirst || IS_LONG ? test : undefined
  let redis: TestRedis
  let harness: AuditStores
  let folder: string
  beforeAll(async () => {
    redis = await startTestRedis()
    harness = await start({ originUrl: 'http://127.0.0.1:9', redis })
    await harness.migrate()
  })
  afterAll(async () => {
    await harness?.close()
    await redis?.close()
  })
  beforeEach(async () => {
    const tables = ['events', 'blocks', 'usage', 'heads', 'checkpoints', 'exports']
    await runAll(
      harness.db,
      tables.map((table) => prepare(harness.db, `DELETE FROM audit_${table}`)),
    )
    await harness.bucket.delete(await names())
    folder = await mkdtemp(join(tmpdir(), 'portcullis-export-'))
  })
  afterEach(() => rm(folder, { recursive: true }))

  const names = async () => (await harness.bucket.list()).objects.map(({ key }) => key)
  const iso = (ms: number) => new Date(ms).toISOString()
  async function append(count: number, timeMs = T0) {
    for (let left = count; left > 0; left -= 100) {
      const events = Array.from({ length: Math.min(left, 100) }, () =>
        anEvent({ time: iso(timeMs) }),
      )
      await insertAuditEvents(harness.db, events, { seal, nowMs: timeMs, digest: sha256Now })
    }
  }
  const sealAt = (nowMs: number) => insertAuditEvents(harness.db, [], { seal, nowMs })
  const upkeep = (nowMs: number, bucket: ExportBucket = harness.bucket) => ({
    db: harness.db,
    seal,
    nowMs,
    bucket,
  })
  const run = (nowMs: number, bucket?: ExportBucket) => exportDue(upkeep(nowMs, bucket), true)

  /** Fetches all objects into the folder, as an operator would. */
  async function download(): Promise<void> {
    for (const name of await names()) {
      const file = join(folder, name)
      await mkdir(dirname(file), { recursive: true })
      await writeFile(file, (await (await harness.bucket.get(name))?.text()) ?? '')
    }
  }
  async function verifyFiles(then?: (after: number) => Promise<ChainPage>) {
    const { reader, extent } = await readExports([folder])
    return verifyChain(reader(then), keys, then ? { from: extent.from } : extent)
  }
  const page = (after: number) => harness.chainPage(after)
  const firstSeq = async () => rowsIn(await page(0))[0]?.seq
  /** Returns the `seq` of all rows of all objects, in the order of their names. */
  async function exported(): Promise<readonly number[]> {
    const texts = await Promise.all(
      (await names()).map(async (name) => (await (await harness.bucket.get(name))?.text()) ?? ''),
    )
    return texts.flatMap((text) => rowsIn(partOf(text) as ChainPage).map(({ seq }) => Number(seq)))
  }
  const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1)

  /** Returns another character of base64url. */
  const otherThan = (character: string) => (character === '_' ? '-' : '_')

  describe('the export of the chain [S66]', () => {
    test('has each sealed row once, in objects with ordered names, and verifies offline', async () => {
      await append(1_350)
      await run(T0)
      await sealAt(T0 + HOUR_MS)
      await run(T0 + HOUR_MS)
      expect(await exported()).toEqual(upTo(1_350))
      const found = await names()
      expect(found).toHaveLength(2)
      expect(found[0]).toBe('audit/0/000000000000001-000000000001000.ndjson')
      expect(await harness.bucket.head(found[0] ?? '')).toMatchObject({ etag: expect.any(String) })
      await download()
      const verdict = await verifyFiles()
      expect(verdict).toMatchObject({ ok: true, events: 1_350, signed: 2, sealed: 1_350 })
      const jwks = join(folder, 'keys.json')
      await writeFile(jwks, keySet)
      const { code, stdout } = await runCli(['audit', 'verify', '--file', folder, '--jwks', jwks])
      expect({ code, stdout }).toMatchObject({ code: 0 })
      expect(stdout).toMatch(
        /^ok: 1350 events, rows 1 to 1350\n2 checkpoints, 2 signed, up to row 1350/,
      )
    })

    onEngines?.('leaves rows that are unsealed or not due for a later run', async () => {
      await append(90)
      await run(T0)
      expect(await names()).toEqual([])
      await sealAt(T0 + 60_000)
      await exportDue(upkeep(T0 + 60_000))
      expect(await exported()).toEqual(upTo(90))
      await append(20, T0 + 61_000)
      await sealAt(T0 + 200_000)
      await exportDue(upkeep(T0 + 200_000))
      expect(await exported()).toHaveLength(90)
      await exportDue(upkeep(T0 + 60_000 + HOUR_MS))
      expect(await exported()).toEqual(upTo(110))
    })

    test.each(isD1 && !IS_LONG ? (['after'] as const) : (['before', 'after'] as const))(
      'is complete when a run dies %s it has written, and holds nothing twice',
      async (when) => {
        await append(1_100)
        let deaths = 0
        const dying: ExportBucket = {
          head: (name) => harness.bucket.head(name),
          get: harness.bucket.get.bind(harness.bucket),
          async put(...args: Parameters<ExportBucket['put']>) {
            deaths += 1
            if (when === 'after') await harness.bucket.put(...args)
            throw new Error('the Worker was ended')
          },
        } as ExportBucket
        await expect(run(T0, dying)).rejects.toThrow('ended')
        await append(700)
        await run(T0)
        await sealAt(T0 + HOUR_MS)
        await run(T0 + HOUR_MS)
        expect(deaths).toBe(1)
        expect(await exported()).toEqual(upTo(1_800))
        expect(new Set(await names()).size).toBe(2)
      },
    )

    test('is the same when two runs write it concurrently', async () => {
      await append(1_300)
      await Promise.all([run(T0), run(T0), run(T0)])
      await run(T0)
      await sealAt(T0 + HOUR_MS)
      await run(T0 + HOUR_MS)
      expect(await exported()).toEqual(upTo(1_300))
    })

    onFirst?.('is bounded for each run, and the next run continues', async () => {
      await append(4_100)
      await run(T0)
      const first = await exported()
      expect(first.length).toBeLessThan(4_100)
      expect(first).toEqual(upTo(first.length))
    })

    onEngines?.(
      'verifies together with the rows in the database, also after retention deleted exported rows',
      async () => {
        await append(1_500, T0)
        await append(300, T0 + 10 * HOUR_MS)
        await sealAt(T0 + 11 * HOUR_MS)
        await run(T0)
        await append(400, T0 + 12 * HOUR_MS)
        await download()
        expect(await verifyFiles(page)).toMatchObject({ ok: true, events: 2_200, first: 1 })
        await endRetention(upkeep(T0 + 12 * HOUR_MS), T0 + HOUR_MS)
        expect(await firstSeq()).toBe(1_501)
        expect(await verifyFiles(page)).toMatchObject({ ok: true, events: 2_200, last: 2_200 })
        const changed = prepare(
          harness.db,
          'UPDATE audit_blocks SET previous_hash = ? WHERE first_seq = 1801',
        )
        await changed.bind('B'.repeat(43)).run()
        expect((await verifyFiles(page)).findings).toMatchObject([{ kind: 'changed', seq: 1_801 }])
      },
    )

    test('has everything that retention deletes', async () => {
      await append(1_200, T0)
      const far = T0 + 400 * HOUR_MS
      await endRetention(upkeep(far), far)
      expect(await firstSeq()).toBe(1)
      await run(T0)
      await endRetention(upkeep(far), far)
      const through = (await exported()).length
      expect(through).toBeGreaterThan(0)
      expect(await firstSeq()).toBe(through + 1)
      await endRetention({ ...upkeep(far), bucket: undefined }, far)
      expect(await firstSeq()).toBeUndefined()
    })

    onFirst?.(
      'any change in a file is found: a value, a line, the beginning, the end',
      async () => {
        await append(1_100)
        await run(T0)
        await download()
        const [name = ''] = await names()
        const file = join(folder, name)
        const text = (await (await harness.bucket.get(name))?.text()) ?? ''
        const lines = text.split('\n')
        const verdicts: [string, string, number][] = [
          ['a value', text.replace('alice', 'mallory'), 1],
          // A salt, which follows a tab, may begin with any character of base64url.
          ['a salt', text.replace(/\\t[\w-]/, (begin) => begin.replace(/.$/, otherThan)), 1],
          // Each block has 100 events in as many lines after its own.
          ['the last line of a block', lines.toSpliced(100, 1).join('\n'), 1],
          ['a block', lines.toSpliced(101, 101).join('\n'), 101],
          ['the beginning', lines.slice(101).join('\n'), 1],
          ['the end', lines.slice(0, 909).join('\n'), 901],
        ]
        for (const [what, changed, seq] of verdicts) {
          await writeFile(file, changed)
          const { ok, findings } = await verifyFiles()
          expect(ok, what).toBe(false)
          expect(findings.find((finding) => finding.seq > 0)?.seq, what).toBe(seq)
        }
        await truncate(file, Math.floor(text.length / 2))
        const { code, stderr } = await runCli(['audit', 'verify', '--file', file])
        expect(code).toBe(1)
        expect(stderr).toMatch(
          /^portcullis: unreadable_export: .*line \d+ is not a row of the audit trail/,
        )
      },
    )
  })
})

test.each([
  ['a bucket', 20_000, () => etagOf({ head: () => never } as unknown as ExportBucket, 'x')],
  ['a database', 35_000, () => within(never)],
] as const)('%s that hangs is given up after the deadline', async (_, timeoutMs, operation) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    let outcome = 'pending'
    const settled = operation().catch((error: Error) => {
      outcome = error.name
    })
    await vi.advanceTimersByTimeAsync(timeoutMs - 1)
    expect(outcome).toBe('pending')
    await vi.advanceTimersByTimeAsync(1)
    await settled
    expect(outcome).toBe('DeadlineExceeded')
  } finally {
    vi.useRealTimers()
  }
})
