/** Where the guard finds the client's address on each runtime, and which headers it does not believe. */
import { Hono } from 'hono'
import { handle as handleLambda, type LambdaContext } from 'hono/aws-lambda'
import { handle as handleEdge } from 'hono/lambda-edge'
import { handle as handleNetlify } from 'hono/netlify'
import { handle as handleVercel } from 'hono/vercel'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import type { GuardOptions } from '../../src/hono/index.ts'
import { errorsLogged, guardWith, type Surroundings, surroundings } from './app.ts'
import { balancerEvent, cloudFrontEvent, lambdaEvent, restApiEvent } from './events.ts'

let given: Surroundings

beforeAll(async () => {
  given = await surroundings()
})

afterAll(() => given?.redis.close())
afterEach(() => vi.unstubAllEnvs())

/** Headers that name the client on one platform each, as any client can send them to the others. */
const FORGED = {
  'CF-Connecting-IP': '198.51.100.1',
  Forwarded: 'for=198.51.100.2',
  'True-Client-IP': '198.51.100.3',
  'X-Forwarded-For': '198.51.100.4',
  'X-NF-Client-Connection-IP': '198.51.100.5',
  'X-Real-IP': '198.51.100.6',
  'X-Vercel-Forwarded-For': '198.51.100.7',
  'Fly-Client-IP': '198.51.100.8',
  'CloudFront-Viewer-Address': '198.51.100.9:1',
}

function appWith(more: Partial<GuardOptions> = {}) {
  let reached = 0
  const guard = guardWith(given, { clientAddress: undefined as never, ...more })
  const app = new Hono().use(guard)
  app.get('/open', guard.public(), (c) => {
    reached++
    return c.text('in')
  })
  app.get('/notes', guard.require('notes:read'), (c) => c.text('in'))
  return { app, reached: () => reached }
}

const seen = () => given.events.at(-1)?.address
const request = () => new Request('https://notes.test/open', { headers: FORGED })

describe('the address that the platform states is the one that counts, whatever headers a client sends', () => {
  test.each([
    ['Node', { incoming: { socket: { remoteAddress: '192.0.2.7' } }, outgoing: {} }],
    ['Bun, with the server', { requestIP: () => ({ address: '::ffff:192.0.2.7' }) }],
    ['Bun, with the server by name', { server: { requestIP: () => ({ address: '192.0.2.7' }) } }],
    ['Deno', { remoteAddr: { transport: 'tcp', hostname: '192.0.2.7', port: 1 } }],
  ])('%s', async (_, env) => {
    await appWith().app.fetch(request(), env)
    expect(seen()).toBe('192.0.2.7')
  })

  test.each([
    ['a function URL or an HTTP API', lambdaEvent],
    ['a REST API', restApiEvent],
  ])('AWS Lambda behind %s', async (_, eventOf) => {
    const handler = handleLambda(appWith().app)
    await handler(eventOf({ path: '/open', headers: FORGED }) as never, {} as LambdaContext)
    expect(seen()).toBe('192.0.2.7')
  })

  test('AWS Lambda behind a load balancer, which appends to X-Forwarded-For', async () => {
    const handler = handleLambda(appWith().app)
    const headers = { ...FORGED, 'X-Forwarded-For': '198.51.100.4, 192.0.2.7' }
    const event = balancerEvent({ path: '/open', headers })
    await handler(event as never, {} as LambdaContext)
    expect(seen()).toBe('192.0.2.7')
  })

  test('AWS Lambda behind VPC Lattice, which passes the header on: unknown', async () => {
    const event = { ...balancerEvent({ path: '/open', headers: FORGED }) }
    const lattice = { ...event, requestContext: { serviceNetworkArn: 'arn', identity: {} } }
    const handler = handleLambda(appWith().app)
    await errorsLogged(() => handler(lattice as never, {} as LambdaContext))
    expect(seen()).toBe('unknown')
  })

  test('Lambda@Edge', async () => {
    const handler = handleEdge(appWith().app)
    await handler(cloudFrontEvent({ path: '/open', headers: FORGED }) as never)
    expect(seen()).toBe('192.0.2.7')
  })

  test('Netlify', async () => {
    await handleNetlify(appWith().app)(request(), { ip: '192.0.2.7' })
    expect(seen()).toBe('192.0.2.7')
  })

  test('Vercel, which overwrites X-Real-IP', async () => {
    vi.stubEnv('VERCEL', '1').stubEnv('VERCEL_REGION', 'fra1')
    await handleVercel(appWith().app)(request())
    expect(seen()).toBe('198.51.100.6')
    // The connection of the server of Node comes from the platform's own proxy.
    await appWith().app.fetch(request(), { incoming: { socket: { remoteAddress: '127.0.0.1' } } })
    expect(seen()).toBe('198.51.100.6')
  })

  test.each([
    ['a server of Next', {}],
    ['variables that were copied from Vercel', { VERCEL: '1', VERCEL_REGION: '' }],
  ])('%s: unknown', async (_, variables) => {
    for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
    await errorsLogged(() => handleVercel(appWith().app)(request()))
    expect(seen()).toBe('unknown')
  })

  test.each([
    ['Node without a socket', { incoming: {} }],
    ['Bun on a Unix socket', { requestIP: () => null }],
    ['Deno on a Unix socket', { remoteAddr: { transport: 'unix', path: '/run/s' } }],
    ['odd values', { incoming: { socket: { remoteAddress: 7 } }, context: { ip: null } }],
  ])('%s: unknown', async (_, env) => {
    await errorsLogged(() => appWith().app.fetch(request(), env))
    expect(seen()).toBe('unknown')
  })
})

describe('without an address', () => {
  const MESSAGE = 'clientAddress: no address of the client is known, so all anonymous callers'

  test.each([
    ['the runtime states none', undefined],
    ['the function of the options returns none', () => undefined],
    ['the function of the options returns no address', () => 'proxy'],
  ])(
    'a limited anonymous request is a 500 that reaches no handler: %s',
    async (_, clientAddress) => {
      const { app, reached } = appWith({
        limits: { standard: '5/h' },
        clientAddress: clientAddress as never,
      })
      const before = given.redis.calls()
      const log = await errorsLogged(async () => {
        for (const _ of [1, 2]) {
          const response = await app.request('/open')
          expect(response.status).toBe(500)
          expect(await response.json()).toMatchObject({ code: 'misconfigured' })
        }
      })
      expect([reached(), given.redis.calls() - before]).toEqual([0, 0])
      expect(given.events.at(-1)).toMatchObject({ decision: 'error', reason: 'misconfigured' })
      expect(log.split(MESSAGE)).toHaveLength(2)
    },
  )

  test('a limit by address refuses identified callers, other limits count them by subject', async () => {
    const headers = await given.bearer()
    const statusWith = async (by: 'address' | 'subject') => {
      const standard = { limit: 9, windowSeconds: 60, by, onUnavailable: 'deny' } as const
      const { app } = appWith({ limits: { standard } })
      return (await app.request('/notes', { headers })).status
    }
    await errorsLogged(async () => {
      expect(await statusWith('address')).toBe(500)
      expect(await statusWith('subject')).toBe(200)
    })
  })

  test('an anonymous request without a limit is served, and the log says what is missing', async () => {
    const { app } = appWith()
    const log = await errorsLogged(async () =>
      expect((await app.request('/open')).status).toBe(200),
    )
    expect(log).toContain(MESSAGE)
  })
})
