import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { chainBehind, GENESIS } from '../../src/audit/chain.ts'
import { chainPageSchema } from '../../src/audit/chain-log.ts'
import { rowOf } from '../../src/stores/d1/audit-row.ts'
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
    '2 rows outside of the chain, which nothing proves',
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
    /^NOT OK: 5 events[\s\S]*\nSEQ +KIND +DETAIL\n3 +changed +it does not have/,
  )
  const gone = await verify({ ...page, rows: rows.slice(0, 3) }, '--json')
  expect(gone.code).toBe(1)
  expect(JSON.parse(gone.stdout)).toMatchObject({
    ok: false,
    findings: [{ kind: 'missing', seq: 4, detail: '2 rows are gone, up to 5' }],
  })
})

test('a chain that has not begun is ok', async () => {
  const { code, stdout } = await verify({ rows: [], checkpoints: [], head: null })
  expect(code).toBe(0)
  expect(stdout).toMatch(/^ok: no events in the chain\n/)
})

test('a file that holds no keys is told before anything is asked', async () => {
  const { code, stderr, asked } = await verify(page, '--jwks', join(ROOT, 'package.json'))
  expect(code).toBe(2)
  expect(stderr).toMatch(/^portcullis: --jwks: .*package\.json is no file with a JWK Set\n$/)
  expect(asked).toEqual([])
})

test('keys that signed nothing of it are a finding', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-verify-'))
  try {
    const file = join(folder, 'keys.json')
    await writeFile(file, JSON.stringify({ keys: [generateSigningJwk('audit-1')] }))
    const { code, stdout } = await verify(page, '--jwks', file)
    expect(code).toBe(1)
    expect(stdout).toContain('none is signed with these keys')
  } finally {
    await rm(folder, { recursive: true })
  }
})
