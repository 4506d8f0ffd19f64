import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { chainBehind, GENESIS } from '../../src/audit/chain.ts'
import { exportName, ndjsonOf } from '../../src/audit/chain-export.ts'
import { rowOf } from '../../src/audit/d1/audit-row.ts'
import { chainPageSchema } from '../../src/audit/log.ts'
import { generateSigningJwk } from '../admin/signing-jwk.ts'
import { anEvent } from '../audit/event.ts'
import { ROOT } from '../harness/process.ts'
import { closeAnswers, startAnswers } from './answers.ts'
import { runCli } from './command-line.ts'

const ENV = { PORTCULLIS_CLIENT_ID: 'a-client', PORTCULLIS_CLIENT_SECRET: 'a-secret' }
const { rows, head } = await chainBehind(
  GENESIS,
  Array.from({ length: 5 }, () => rowOf(anEvent())),
)
const page = { rows, checkpoints: [], head, unchained: 2 }

async function verify(body: unknown, ...args: readonly string[]) {
  const { url, asked } = await startAnswers({ '/-/admin/audit/chain': { body } })
  const outcome = await runCli(['audit', 'verify', '--url', url, ...args], { env: ENV })
  return { ...outcome, asked }
}

afterEach(closeAnswers)

test('S66: a chain as it was is ok, with what was looked at and what was not', async () => {
  expect(chainPageSchema.parse(page)).toEqual(page)
  const { code, stdout, stderr } = await verify(page)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout.split('\n')).toEqual([
    'ok: 5 events, rows 1 to 5',
    '0 checkpoints, signatures not checked (--jwks)',
    '2 rows outside of the chain, not verified',
    `the last hash is ${head.hash}`,
    '',
  ])
  expect(JSON.parse((await verify(page, '--json')).stdout)).toMatchObject({
    ok: true,
    signed: null,
    findings: [],
  })
})

test('S66: a chain that is not as it was ends with 1, and names its rows', async () => {
  const changed = rows.map((row) => (row.seq === 3 ? { ...row, subject: '\u001b[2Jmallory' } : row))
  const { code, stdout } = await verify({ ...page, rows: changed })
  expect(code).toBe(1)
  expect(stdout).toMatch(
    /^NOT OK: 5 events[\s\S]*\nSEQ +KIND +DETAIL\n3 +changed +its hash does not/,
  )
  const gone = await verify({ ...page, rows: rows.slice(0, 3) }, '--json')
  expect(gone.code).toBe(1)
  expect(JSON.parse(gone.stdout)).toMatchObject({
    ok: false,
    findings: [{ kind: 'missing', seq: 4, detail: '2 rows are missing, up to 5' }],
  })
})

test('one of a thing is one, not several', async () => {
  const [row] = rows
  const one = { kind: 'sealed', seq: 1, hash: row?.hash, time_ms: 1, signature: null }
  const alone = { rows: [row], checkpoints: [one], head: { seq: 1, hash: row?.hash }, unchained: 1 }
  const { stdout } = await verify(alone)
  expect(stdout).toContain('ok: 1 event, rows 1 to 1\n1 checkpoint, signatures')
  expect(stdout).toContain('1 row outside of the chain')
})

test('a chain that has not begun is ok', async () => {
  const { code, stdout } = await verify({ rows: [], checkpoints: [], head: null })
  expect(code).toBe(0)
  expect(stdout).toMatch(/^ok: no events in the chain\n/)
})

test('a file that holds no keys is told before anything is asked', async () => {
  const { code, stderr, asked } = await verify(page, '--jwks', join(ROOT, 'package.json'))
  expect(code).toBe(2)
  expect(stderr).toMatch(/^portcullis: --jwks: .*package\.json does not contain a JWK Set\n$/)
  expect(asked).toEqual([])
})

test('keys that signed nothing of it are a finding', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-verify-'))
  try {
    const file = join(folder, 'keys.json')
    await writeFile(file, JSON.stringify({ keys: [generateSigningJwk('audit-1')] }))
    const { code, stdout } = await verify(page, '--jwks', file)
    expect(code).toBe(1)
    expect(stdout).toContain('no checkpoint is signed with these keys')
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('files are verified without a gateway, and with the rest of it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-verify-'))
  try {
    const exported = { rows: rows.slice(0, 3), checkpoints: [] }
    await writeFile(join(folder, exportName(1, 3).replaceAll('/', '-')), ndjsonOf(exported))
    const offline = await runCli(['audit', 'verify', '--file', folder])
    expect(offline).toMatchObject({ code: 0, stderr: '' })
    expect(offline.stdout).toMatch(/^ok: 3 events, rows 1 to 3\n/)
    const rest = { rows: rows.slice(3), checkpoints: [], head }
    const both = await verify(rest, '--file', folder, '--and-gateway', '--json')
    expect(both.code).toBe(0)
    expect(JSON.parse(both.stdout)).toMatchObject({ ok: true, events: 5, last: 5 })
    expect(both.asked.at(-1)?.query).toBe('after=3')
    const gap = await verify({ ...rest, rows: rows.slice(4) }, '--file', folder, '--and-gateway')
    expect(gap.code).toBe(1)
    expect(gap.stdout).toMatch(/\n4 +missing +it is missing\n/)
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('S66: a file without a row, and a chain that is gone behind what was pruned, are not ok', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-verify-'))
  try {
    await writeFile(join(folder, 'exported.ndjson'), '')
    const { code, stderr } = await runCli(['audit', 'verify', '--file', folder])
    expect(code).toBe(1)
    expect(stderr).toMatch(
      /^portcullis: unreadable_export: .*exported\.ndjson: the file contains no row\n$/,
    )
  } finally {
    await rm(folder, { recursive: true })
  }
  const pruned = { ...head, partition: '0', kind: 'pruned', time_ms: 1, signature: null }
  const emptied = { rows: [], checkpoints: [pruned] }
  expect((await verify({ ...emptied, head })).code).toBe(0)
  const without = await verify({ ...emptied, head: null }, '--json')
  expect(without.code).toBe(1)
  expect(JSON.parse(without.stdout).findings).toEqual([
    { kind: 'head', seq: 5, detail: 'the end of the chain is not recorded' },
  ])
  const other = await verify({ ...emptied, head: { seq: 5, hash: 'B'.repeat(43) } }, '--json')
  expect(JSON.parse(other.stdout).findings).toMatchObject([{ kind: 'changed', seq: 5 }])
})

test('files that are not there, and a gateway without files, are told before anything is asked', async () => {
  const nothing = await verify(page, '--file', join(tmpdir(), 'not-there'))
  expect(nothing).toMatchObject({ code: 2, stdout: '', asked: [] })
  expect(nothing.stderr).toMatch(/^portcullis: --file: .*not-there cannot be read\n$/)
  const alone = await verify(page, '--and-gateway')
  expect(alone).toMatchObject({ code: 2, stdout: '', asked: [] })
})
