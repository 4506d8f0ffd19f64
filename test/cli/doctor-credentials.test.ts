/** Doctor checks the variables of the gateway's own credentials at origins. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { checkFeatures } from '../../cli/doctor/policy.ts'
import { ROOT } from '../harness/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'portcullis-doctor-'))
afterAll(() => rmSync(folder, { recursive: true }))
writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
writeFileSync(
  join(folder, 'portcullis.config.ts'),
  `
import { clientCredentials, secret } from '${ROOT}/src/features/credentials/index.ts'
import { origins } from '${ROOT}/src/features/origins/index.ts'
import { definePolicy } from '${ROOT}/src/index.ts'
const key = secret({ variable: 'ORIGIN_SECRET_A', header: 'X-Api-Key' })
export default definePolicy({
  roles: { reader: ['notes:read'] },
  limits: {},
  origins: origins({ a: { url: 'https://a.test', credentials: key } }),
  routes: [
    { method: 'GET', path: '/a', permission: 'notes:read', origin: 'a' },
    { method: 'GET', path: '/a/more', permission: 'notes:read', origin: 'a' },
    {
      method: 'GET',
      path: '/b',
      permission: 'notes:read',
      credentials: clientCredentials({
        tokenEndpoint: 'https://idp.test/token',
        client: 'gateway',
        variable: 'ORIGIN_SECRET_B',
      }),
    },
  ],
})
`,
)

const found = async (given: Readonly<Record<string, string>>) => {
  const values = { SIGNING_KEYS: '{}', ...given }
  const findings = await checkFeatures(folder, values, values, {})
  expect(JSON.stringify(findings)).not.toContain('never-shown')
  return findings.filter(({ check }) => check === 'credentials')
}

test('names each variable that is missing, once for all routes of an origin', async () => {
  const findings = await found({})
  expect(findings.map(({ level }) => level)).toEqual(['error', 'error'])
  expect(findings[0]?.seen).toMatch(/^ORIGIN_SECRET_A: /)
  expect(findings[1]?.seen).toMatch(/^ORIGIN_SECRET_B: /)
})

test('says what an origin gets, without the value', async () => {
  const set = 'never-shown-0123456789'
  const findings = await found({ ORIGIN_SECRET_A: set, ORIGIN_SECRET_B: set })
  expect(findings.map(({ level, seen }) => [level, seen])).toEqual([
    ['ok', 'header X-Api-Key from ORIGIN_SECRET_A: set'],
    ['ok', 'access token of the client gateway, with ORIGIN_SECRET_B: set'],
  ])
})

test('refuses an empty value', async () => {
  const [finding] = await found({ ORIGIN_SECRET_A: '', ORIGIN_SECRET_B: 'never-shown' })
  expect(finding?.level).toBe('error')
})
