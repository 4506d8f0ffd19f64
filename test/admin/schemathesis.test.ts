import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createKey, ISSUER, mint } from '../harness/issuer.ts'
import { freePort, type Running, run } from '../harness/process.ts'
import { installSchemathesis, runSchemathesis } from './schemathesis.ts'

const PATIENCE_MS = 240_000

const missing = installSchemathesis()
if (missing !== undefined)
  console.info(`schemathesis: not run, it could not be installed (${missing})`)

describe.skipIf(missing !== undefined)('requests generated from the OpenAPI document', () => {
  let gateway: Running
  let url: string
  let token: string
  beforeAll(async () => {
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    const key = await createKey('idp')
    const issuer = { issuer: ISSUER, audience: url, jwks: { keys: [key.publicJwk] } }
    const env = { PORT: String(port), ISSUERS: JSON.stringify([issuer]) }
    gateway = await run([process.execPath, 'dev/start.ts'], env, 'Portcullis is ready on')
    token = await mint(key, { claims: { sub: randomUUID(), aud: url, roles: ['operator'] } })
  })
  afterAll(() => gateway?.stop())

  test(
    'S63: no operator or public call answers with 5xx or with an undocumented response',
    async () => {
      const { code, output } = await runSchemathesis(url, [
        ...['--header', `Authorization: Bearer ${token}`],
        ...['--include-path-regex', '^/(-|.well-known)/'],
      ])
      expect(code, output).toBe(0)
      expect(output).toMatch(/[1-9]\d{2,} generated/)
    },
    PATIENCE_MS,
  )

  test(
    'S63: the authorization server does not either',
    async () => {
      const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
      const created = await fetch(`${url}/-/admin/clients`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ name: 'fuzzer', grants: ['client_credentials', 'refresh_token'] }),
      })
      const { clientId, clientSecret } = (await created.json()) as Record<string, string>
      const { code, output } = await runSchemathesis(url, [
        ...['--auth', `${clientId}:${clientSecret}`, '--include-path-regex', '^/oauth/'],
      ])
      expect(code, output).toBe(0)
      expect(output).toMatch(/[1-9]\d{2,} generated/)
    },
    PATIENCE_MS,
  )
})
