import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../harness/process.ts'
import { type Checkout, makeCheckout, type Outcome } from './checkout.ts'

const UPSTASH_TOKEN = 'dQ7nXr2kPz9sLw4vBt6yHm1c'

describe('npm start refuses with a helpful message', () => {
  let checkout: Checkout

  beforeAll(async () => {
    checkout = await makeCheckout()
  })

  afterAll(() => checkout.close())

  async function start(env: Record<string, string>, ...args: string[]): Promise<Outcome> {
    const port = String(await freePort())
    return checkout.run(['node', 'dev/start.ts', ...args], { PORT: port, ...env }).ended
  }

  it.each<[string, Record<string, string>, string]>([
    ['an invalid port', { PORT: 'web' }, 'PORT must be a number from 1 to 65535'],
    ['port 0', { PORT: '0' }, 'PORT must be a number from 1 to 65535'],
    [
      'a REST URL without a token',
      { UPSTASH_REDIS_REST_URL: 'https://db.example' },
      'UPSTASH_REDIS_REST_URL is given without UPSTASH_REDIS_REST_TOKEN',
    ],
    [
      'a REST token without a URL',
      { UPSTASH_REDIS_REST_TOKEN: UPSTASH_TOKEN },
      'UPSTASH_REDIS_REST_TOKEN is given without UPSTASH_REDIS_REST_URL',
    ],
    [
      'an unreachable REST endpoint',
      { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1', UPSTASH_REDIS_REST_TOKEN: UPSTASH_TOKEN },
      'UPSTASH_REDIS_REST_URL: no response from 127.0.0.1:1',
    ],
    [
      'an unreachable Redis',
      { REDIS_URL: 'redis://127.0.0.1:1' },
      'REDIS_URL: no response from Redis at 127.0.0.1:1 (ECONNREFUSED)',
    ],
    [
      'a server that is not Redis',
      { REDIS_URL: 'http://127.0.0.1:1' },
      'REDIS_URL: the Redis URL must look like redis://host:port',
    ],
    [
      'a missing policy file',
      { PORTCULLIS_CONFIG: '/nowhere/policy.ts' },
      'PORTCULLIS_CONFIG: there is no file /nowhere/policy.ts',
    ],
    [
      'issuers that are not JSON',
      { ISSUERS: '[{' },
      'The environment is not valid:\n  - ISSUERS: must be valid JSON',
    ],
  ])('%s', async (_what, env, message) => {
    expect(await start(env)).toEqual({ code: 1, stdout: '', stderr: `portcullis: ${message}\n` })
  })

  it('an unknown option', async () => {
    const { code, stderr } = await start({}, '--hurry')
    expect(code).toBe(1)
    expect(stderr).toContain("'--hurry'")
  })

  it('every mistake of a policy, wherever the file is', async () => {
    const other = await makeCheckout()
    const policy = join(other.path, 'policy.ts')
    await writeFile(
      policy,
      `import { definePolicy } from 'portcullis'
       import * as z from 'zod'
       import { cors } from 'hono/cors'
       export default definePolicy({
         roles: { reader: ['not a permission', 'orders:' + typeof cors] },
         limits: {},
         routes: [{ method: 'GET', path: 'orders', anonymous: true, input: { query: z.object() } }],
       })`,
    )
    const { code, stdout, stderr } = await start({ PORTCULLIS_CONFIG: policy })
    await other.close()
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain('The policy is not valid:\n  - ')
    // With the place of each mistake.
    expect(stderr).toMatch(/\n {2}- \S+policy\.ts:5:28: roles\.reader\[0\]: /)
    expect(stderr).toMatch(/\n {2}- \S+policy\.ts:7:36: routes\[0\]\.path: /)
    expect(stderr).not.toContain('roles.reader[1]')
  })
})
