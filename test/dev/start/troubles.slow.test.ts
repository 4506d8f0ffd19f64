/** The messages of `npm start` about faults in its environment. */
import { createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startRedis } from '../../../dev/redis.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { createKey } from '../../harness/issuer.ts'
import { freePort } from '../../harness/process.ts'
import { type Checkout, type Command, makeCheckout } from './checkout.ts'
import { alive, commandOf, descendantsOf } from './processes.ts'

/** Every start needs less than this: key sets are fetched again within half a minute. */
const PATIENCE_MS = 150_000

const found = await startRedis({ prefer: 'server' }).catch(() => undefined)
await found?.close()

describe('npm start', () => {
  let checkout: Checkout
  let provider: TestServer
  let isProviderWell = false
  let port: number
  let running: Command

  beforeAll(async () => {
    checkout = await makeCheckout()
    port = await freePort()
    const keys = JSON.stringify({ keys: [(await createKey('one')).publicJwk] })
    provider = await startHttpServer((_request, response) => {
      response.writeHead(isProviderWell ? 200 : 404).end(isProviderWell ? keys : 'hush')
    })
    const trusted = { issuer: 'https://idp.example.com', audience: 'https://api.example.com' }
    running = checkout.run(['node', 'dev/start.ts'], {
      PORT: String(port),
      ISSUERS: JSON.stringify([{ ...trusted, jwksUri: `${provider.url}/keys?token=hush` }]),
    })
  })

  afterAll(async () => {
    await checkout?.close()
    await provider?.close()
  })

  it('reports mistakes in the environment before a port that is in use', async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const { code, stderr } = await checkout.run(['node', 'dev/start.ts'], {
      PORT: String(port),
      ISSUERS: '[{',
    }).ended
    server.close()
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'portcullis: The environment is not valid:\n  - ISSUERS: must be valid JSON\n',
    })
  })

  it(
    'names the issuer whose key set is unavailable with the cause, and becomes ready later',
    async () => {
      const { stdout, stderr } = await running.printed(/^portcullis: waiting for at most \d+ s/m)
      expect(stdout).toBe('')
      const complaint = `ISSUERS: https://idp.example.com: jwksUri ${provider.url}/keys responds with status 404`
      expect(stderr.split('\n').filter((line) => line.includes('ISSUERS'))).toEqual([
        `portcullis: ${complaint}`,
      ])
      expect(stderr).not.toContain('hush')
      isProviderWell = true
      await running.printed(/^Portcullis is ready on /m)
    },
    PATIENCE_MS,
  )

  it.runIf(found)(
    'ends when the Redis that it started ends, and reports it',
    async () => {
      await running.printed(/^npx portcullis /m)
      const family = descendantsOf(running.pid)
      const redis = family.filter((pid) => commandOf(pid).startsWith('redis-server'))
      expect(redis.length).toBe(1)
      for (const pid of redis) process.kill(pid, 'SIGKILL')
      const { code, stderr } = await running.ended
      expect(code).toBe(1)
      expect(stderr).toMatch(
        /^portcullis: the local Redis ended, and its data is lost \(redis-server ended with code 137\); start again$/m,
      )
      expect(alive(family)).toEqual([])
    },
    PATIENCE_MS,
  )
})
