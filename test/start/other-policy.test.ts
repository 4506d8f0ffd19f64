import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exportJWK, generateKeyPair } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { freePort } from '../harness/process.ts'
import { type Checkout, type Command, makeCheckout } from './checkout.ts'
import { alive, commandOf, descendantsOf } from './processes.ts'

/** Outside of any package: what it imports must come from the checkout. */
const POLICY = `
import { definePolicy } from 'portcullis'
import * as z from 'zod'
export default definePolicy({
  roles: { guest: ['orders:read'] },
  limits: {},
  routes: [
    {
      method: 'GET',
      path: '/orders',
      permission: 'orders:read',
      input: { query: z.strictObject({ colour: z.enum(['red', 'green']).optional() }) },
    },
  ],
})
`

describe('npm start with another policy, another issuer and Redis of its own', () => {
  let checkout: Checkout
  let folder: string
  let started: Command
  let url: string
  let keySet: TestServer
  let keySetIsUp = false

  beforeAll(async () => {
    checkout = await makeCheckout()
    folder = await mkdtemp(join(tmpdir(), 'portcullis-policy-'))
    await writeFile(join(folder, 'policy.ts'), POLICY)
    const { publicKey } = await generateKeyPair('ES256')
    const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'k1' }] })
    keySet = await startHttpServer((_request, response) => {
      response.writeHead(keySetIsUp ? 200 : 503, { 'Content-Type': 'application/json' })
      response.end(keySetIsUp ? jwks : '{}')
    })
    const port = String(await freePort())
    url = `http://127.0.0.1:${port}`
    started = checkout.run(['node', 'dev/start.ts'], {
      PORT: port,
      PORTCULLIS_CONFIG: join(folder, 'policy.ts'),
      ISSUERS: JSON.stringify([
        { issuer: "https://it's.example/$HOME", audience: 'a', jwksUri: `${keySet.url}/jwks` },
      ]),
    })
    const { stdout } = await started.said(/not ready yet: GET \/-\/readyz answers 503/)
    expect(stdout).toBe('')
    keySetIsUp = true
    await started.said(/^# 404.*\ncurl .*\n/m)
  })

  afterAll(async () => {
    await checkout.close()
    await keySet.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('holds to that policy', async () => {
    const command = ['npm', 'run', '-s', 'token', '--', '--sub', 'eve', '--role', 'guest'] as const
    const bearer = (await checkout.run(command).ended).stdout.trim()
    const status = async (path: string) =>
      (await fetch(url + path, { headers: { Authorization: `Bearer ${bearer}` } })).status
    expect(await status('/orders?colour=red')).toBe(200)
    expect(await status('/orders?colour=blue')).toBe(422)
    expect(await status('/public/ping')).toBe(404)
  })

  it('is interrupted by a mistake that is saved, tells it, and goes on with Redis when it is mended', async () => {
    const redis = () => descendantsOf(started.pid).filter((pid) => commandOf(pid).includes('redis'))
    const before = redis()
    const save = (text: string) => writeFile(join(folder, 'policy.ts'), text)
    const mistake = '  - routes[0].path: must be a path pattern such as /orders/:id or /files/*\n'
    const waiting = 'portcullis: nothing is served until that is mended and saved\n'

    await save(POLICY.replace("'/orders'", "'orders'"))
    const { stderr } = await started.said(/until that is mended/)
    const told = `portcullis: The policy is not valid:\n${mistake}${waiting}`
    expect(stderr.slice(-told.length)).toBe(told)
    expect(stderr).not.toMatch(/\[ERROR\]|workerd|timestamp/)

    await save(POLICY.replace("'/orders'", "'orders'").replace("'guest'", "'visitor'"))
    await started.said(/(until that is mended.*){2}/s)
    await save(POLICY.replace("'/orders'", "'/books'").replaceAll('orders:read', 'books:read'))
    await started.said(/^portcullis: ready again$/m)
    expect(redis()).toEqual(before)
    expect((await fetch(`${url}/orders`)).status).toBe(404)
    expect((await fetch(`${url}/books`)).status).toBe(401)
  })

  it('ends by itself, in error and with everything it started, when wrangler dies', async () => {
    const family = descendantsOf(started.pid)
    const [wrangler] = family.filter((pid) => commandOf(pid).includes('wrangler'))
    if (wrangler === undefined) throw new Error('there is no wrangler')
    process.kill(wrangler, 'SIGKILL')
    const { code, stderr } = await started.ended
    expect(code).toBe(1)
    expect(stderr).toContain('portcullis: wrangler ended by itself')
    expect(alive(family)).toEqual([])
  })
})
