import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { GENESIS } from '../../src/audit/chain.ts'
import { exportName, ndjsonOf } from '../../src/audit/chain-export.ts'
import { chainPageSchema } from '../../src/audit/log.ts'
import { chainBehind, rowOf } from '../audit/earlier-rows.ts'
import { anEvent } from '../audit/event.ts'
import { generateSigningJwk } from '../features/operators/signing-jwk.ts'
import { ROOT } from '../harness/process.ts'
import { runHere } from './command-here.ts'
import { runCli } from './command-line.ts'
import { closeStubGateways, startStubGateway } from './stub-gateway.ts'

const ENV = { PORTCULLIS_CLIENT_ID: 'a-client', PORTCULLIS_CLIENT_SECRET: 'a-secret' }
const { rows, head } = await chainBehind(
  GENESIS,
  Array.from({ length: 5 }, () => rowOf(anEvent())),
)
const page = { rows, checkpoints: [], head, unchained: 2 }

async function verify(body: unknown, ...args: readonly string[]) {
  const { url, requests } = await startStubGateway({ '/-/admin/audit/chain': { body } })
  const outcome = await runHere(['audit', 'verify', '--url', url, ...args], { env: ENV })
  return { ...outcome, requests }
}

afterEach(closeStubGateways)

test('audit verify accepts an unchanged chain, and prints what it verified and what it did not [S66]', async () => {
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

test('audit verify exits with 1 for a changed chain, and names the changed rows [S66]', async () => {
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

test('audit verify writes the singular for one event, one checkpoint and one row', async () => {
  const [row] = rows
  const one = { kind: 'sealed', seq: 1, hash: row?.hash, time_ms: 1, signature: null }
  const alone = { rows: [row], checkpoints: [one], head: { seq: 1, hash: row?.hash }, unchained: 1 }
  const { stdout } = await verify(alone)
  expect(stdout).toContain('ok: 1 event, rows 1 to 1\n1 checkpoint, signatures')
  expect(stdout).toContain('1 row outside of the chain')
})

test('audit verify accepts a chain without events', async () => {
  const { code, stdout } = await verify({ rows: [], checkpoints: [], head: null })
  expect(code).toBe(0)
  expect(stdout).toMatch(/^ok: no events in the chain\n/)
})

test('audit verify refuses a file without keys before it sends a request', async () => {
  const { code, stderr, requests } = await verify(page, '--jwks', join(ROOT, 'package.json'))
  expect(code).toBe(2)
  expect(stderr).toMatch(/^portcullis: --jwks: .*package\.json does not contain a JWK Set\n$/)
  expect(requests).toEqual([])
})

test('audit verify reports keys that signed no checkpoint', async () => {
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

test('audit verify verifies files without a gateway, and together with the rest of the chain', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-verify-'))
  try {
    const exported = { rows: rows.slice(0, 3), blocks: [], checkpoints: [] }
    await writeFile(join(folder, exportName(1, 3).replaceAll('/', '-')), ndjsonOf(exported))
    const offline = await runCli(['audit', 'verify', '--file', folder])
    expect(offline).toMatchObject({ code: 0, stderr: '' })
    expect(offline.stdout).toMatch(/^ok: 3 events, rows 1 to 3\n/)
    const rest = { rows: rows.slice(3), checkpoints: [], head }
    const both = await verify(rest, '--file', folder, '--and-gateway', '--json')
    expect(both.code).toBe(0)
    expect(JSON.parse(both.stdout)).toMatchObject({ ok: true, events: 5, last: 5 })
    expect(both.requests.at(-1)?.query).toBe('after=3')
    const gap = await verify({ ...rest, rows: rows.slice(4) }, '--file', folder, '--and-gateway')
    expect(gap.code).toBe(1)
    expect(gap.stdout).toMatch(/\n4 +missing +it is missing\n/)
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('audit verify refuses a file without rows, and a chain without a valid end after pruned rows [S66]', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-verify-'))
  try {
    await writeFile(join(folder, 'exported.ndjson'), '')
    const { code, stderr } = await runHere(['audit', 'verify', '--file', folder])
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

test('audit verify refuses a missing file, and --and-gateway without files, before it sends a request', async () => {
  const nothing = await verify(page, '--file', join(tmpdir(), 'not-there'))
  expect(nothing).toMatchObject({ code: 2, stdout: '', requests: [] })
  expect(nothing.stderr).toMatch(/^portcullis: --file: .*not-there cannot be read\n$/)
  const alone = await verify(page, '--and-gateway')
  expect(alone).toMatchObject({ code: 2, stdout: '', requests: [] })
})
