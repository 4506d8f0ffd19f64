import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exportJWK, generateKeyPair } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { freePort } from '../../harness/process.ts'
import { type Checkout, type Command, makeCheckout } from './checkout.ts'
import { alive, commandOf, descendantsOf } from './processes.ts'

/** Outside of any package: its imports must resolve to the checkout. */
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
      input: { query: z.strictObject({ color: z.enum(['red', 'green']).optional() }) },
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
    await mkdir(join(folder, 'shared'))
    await writeFile(join(folder, 'shared', 'path.ts'), "export const path = 'no path'")
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
    const { stdout } = await started.printed(/not ready yet: GET \/-\/readyz responds 503/)
    expect(stdout).toBe('')
    keySetIsUp = true
    await started.printed(/^# 404.*\ncurl .*\n/m)
  })

  afterAll(async () => {
    await checkout.close()
    await keySet.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('applies that policy', async () => {
    const command = ['npm', 'run', '-s', 'token', '--', '--sub', 'eve', '--role', 'guest'] as const
    const bearer = (await checkout.run(command).ended).stdout.trim()
    const status = async (path: string) =>
      (await fetch(url + path, { headers: { Authorization: `Bearer ${bearer}` } })).status
    expect(await status('/orders?color=red')).toBe(200)
    expect(await status('/orders?color=blue')).toBe(422)
    expect(await status('/public/ping')).toBe(404)
  })

  describe('while the policy is edited', () => {
    const WAITING = 'portcullis: no request is served until the mistake is corrected and saved\n'
    const redis = () => descendantsOf(started.pid).filter((pid) => commandOf(pid).includes('redis'))
    const save = (text: string) => writeFile(join(folder, 'policy.ts'), text)
    const statusOf = async (path: string) => (await fetch(url + path)).status
    /** Resolves to the stderr output from now on, once it matches. */
    async function hearing(what: RegExp, change: () => Promise<unknown>): Promise<string> {
      const { length } = started.stderr()
      const heard = () => started.stderr().slice(length)
      await change()
      await expect.poll(heard, { timeout: 60_000 }).toMatch(what)
      return heard()
    }

    it('reports a mistake, and continues with the same Redis after the fix, in an imported file as well', async () => {
      const before = redis()
      expect(before.length).toBeGreaterThan(0)
      const using = `import { path } from './shared/path.ts'\n${POLICY.replace("'/orders'", 'path')}`
      const printedText = await hearing(/until the mistake is corrected and saved/, () =>
        save(using),
      )
      const place = `${join(folder, 'policy.ts')}:11:7: `
      const mistake = `  - ${place}routes[0].path: must be a path pattern such as /orders/:id or /files/*\n`
      expect(printedText).toBe(`portcullis: The policy is not valid:\n${mistake}${WAITING}`)
      const thrown = await hearing(/until the mistake is corrected and saved/, () =>
        save(`${POLICY}\nthrow new Error('boom')`),
      )
      expect(thrown).toMatch(/^portcullis: Uncaught Error: boom\n/m)
      expect(thrown).not.toMatch(/runtime|stderr|ERROR|not valid/)
      await hearing(/until the mistake is corrected and saved/, () => save(using))
      const changed = await hearing(/^portcullis: ready again$/m, () =>
        writeFile(join(folder, 'shared', 'path.ts'), "export const path = '/shared'"),
      )
      expect(changed).toMatch(/guest gains GET \/shared/)
      expect(redis()).toEqual(before)
      expect(await statusOf('/shared')).toBe(401)
    })

    it('notices a change that is saved while the Workers end because of a mistake', async () => {
      await save(POLICY.replace("'/orders'", "'orders'"))
      await new Promise((done) => setTimeout(done, 1_500))
      await save(POLICY.replace("'/orders'", "'/mended'"))
      await expect.poll(() => statusOf('/mended').catch(() => 0), { timeout: 60_000 }).toBe(401)
    })

    it('serves nothing, and no other policy, while the file is missing', async () => {
      const gone = await hearing(/requests wait until the mistake is corrected/, () =>
        rm(join(folder, 'policy.ts')),
      )
      expect(gone).toMatch(/Could not resolve ".*policy\.ts"/)
      const demo = fetch(`${url}/public/ping`).then(({ status }) => status)
      await hearing(/^portcullis: ready again$/m, () => save(POLICY))
      expect(await demo).toBe(404)
      expect(await statusOf('/orders')).toBe(401)
    })
  })

  it('reports a saved relation model that differs from its JSON', async () => {
    const path = join(checkout.path, 'portcullis.fga')
    const text = await checkout.file('portcullis.fga')
    const { length } = started.stderr()
    await writeFile(path, `${text}\ntype planet\n`)
    await expect
      .poll(() => started.stderr().slice(length))
      .toMatch(/portcullis\.model\.json does not match portcullis\.fga; run: npm run -s model\n/)
    await writeFile(path, text)
  })

  it('ends with an error and with all its processes when wrangler dies', async () => {
    const family = descendantsOf(started.pid)
    const [wrangler] = family.filter((pid) => commandOf(pid).includes('wrangler'))
    if (wrangler === undefined) throw new Error('no wrangler process is running')
    process.kill(wrangler, 'SIGKILL')
    const { code, stderr } = await started.ended
    expect(code).toBe(1)
    expect(stderr).toContain('portcullis: wrangler ended unexpectedly')
    expect(alive(family)).toEqual([])
  })
})
