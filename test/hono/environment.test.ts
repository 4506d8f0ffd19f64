/** Which environment the options function gets, and how often a guard is built from it. */

import { Hono } from 'hono'
import type { LambdaContext } from 'hono/aws-lambda'
import { handle as handleLambda } from 'hono/aws-lambda'
import { handle as handlePages } from 'hono/cloudflare-pages'
import { handle as handleNetlify } from 'hono/netlify'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { type GuardOptions, portcullis } from '../../src/hono/index.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { type Surroundings, surroundings } from './app.ts'
import { lambdaEvent, pagesContext } from './events.ts'

const NAME = 'PORTCULLIS_TEST_ISSUER'

let given: Surroundings
let provider: TestServer
let calls = 0
const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})

beforeAll(async () => {
  given = await surroundings()
  provider = await startHttpServer((_, response) => {
    calls++
    response.writeHead(200, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify({ keys: [given.key.publicJwk] }))
  })
  vi.stubEnv(NAME, provider.url)
})

afterAll(async () => {
  vi.unstubAllEnvs()
  warn.mockRestore()
  await provider?.close()
  await given?.redis.close()
})

beforeEach(() => {
  calls = 0
})

afterEach(() => warn.mockClear())

type Variables = Readonly<Record<typeof NAME, string | undefined>>

function guarded(optionsOf: (env: Variables) => GuardOptions = optionsFrom) {
  const options = vi.fn(optionsOf)
  const app = new Hono().use(portcullis(options as never))
  app.get('/', (c) => c.text('in'))
  return { app, options }
}

const optionsFrom = (env: Variables): GuardOptions => ({
  ...given.options,
  issuers: [
    {
      issuer: env[NAME],
      audience: 'https://notes.example.com',
      jwksUri: `${env[NAME]}/keys`,
    },
  ],
})

const headersOf = async () => {
  const claims = { iss: provider.url, aud: 'https://notes.example.com' }
  return given.bearer(['reader'], { claims })
}

describe('an options function reads the variables of the process', () => {
  test('on AWS Lambda', async () => {
    const handler = handleLambda(guarded().app)
    const event = lambdaEvent({ headers: await headersOf() })
    const answer: unknown = await handler(event as never, {} as LambdaContext)
    expect(answer).toMatchObject({ statusCode: 200 })
  })

  test('on Netlify', async () => {
    const handler = handleNetlify(guarded().app)
    const request = new Request('https://notes.test/', { headers: await headersOf() })
    expect((await handler(request, { ip: '192.0.2.1' })).status).toBe(200)
  })

  test.each([
    ['the connection of Deno', { remoteAddr: { hostname: '192.0.2.1' } }],
    ['an address that the app found itself', { ip: '192.0.2.1' }],
    ['the request and response of Node', { incoming: {}, outgoing: {} }],
  ])('where the environment of the request has only %s', async (_, env) => {
    const { app, options } = guarded()
    const headers = await headersOf()
    for (const fresh of [{ ...env }, { ...env }])
      expect((await app.request('/', { headers }, fresh)).status).toBe(200)
    expect(options).toHaveBeenCalledTimes(1)
  })

  test('and a test may replace some of them', async () => {
    const { app } = guarded()
    const headers = await headersOf()
    const other = { [NAME]: 'https://other.test' }
    expect((await app.request('/', { headers }, other)).status).toBe(401)
    expect((await app.request('/', { headers })).status).toBe(200)
  })
})

describe('an environment that is a new object in each request', () => {
  test('builds the guard once: 50 requests fetch the keys of the issuer once', async () => {
    const { app, options } = guarded()
    const headers = await headersOf()
    for (let sent = 0; sent < 50; sent++) {
      const env = { [NAME]: provider.url, nonce: sent }
      expect((await app.request('/', { headers }, env)).status).toBe(200)
    }
    expect([options.mock.calls.length, calls]).toEqual([1, 1])
    expect(warn).not.toHaveBeenCalled()
  })

  test('does so with the adapter of Pages, and where the function copies all variables', async () => {
    const { app, options } = guarded((env) => optionsFrom({ ...env }))
    const handler = handlePages(app)
    const headers = await headersOf()
    for (let sent = 0; sent < 3; sent++) {
      const context = pagesContext({ headers, env: { [NAME]: provider.url } })
      expect((await handler(context as never)).status).toBe(200)
    }
    const names = Object.keys(options.mock.calls[0]?.[0] ?? {})
    expect(names).toContain(NAME)
    expect([calls, warn.mock.calls.length]).toEqual([1, 0])
  })

  test('is named in the log at the third build, if a variable differs that the function reads', async () => {
    const { app, options } = guarded((env) => {
      void (env as { nonce?: object }).nonce
      return optionsFrom(env)
    })
    const headers = await headersOf()
    for (let sent = 0; sent < 4; sent++)
      expect((await app.request('/', { headers }, { nonce: {} })).status).toBe(200)
    expect(options).toHaveBeenCalledTimes(4)
    expect(warn).toHaveBeenCalledTimes(1)
    expect(warn.mock.calls[0]?.[0]).toContain(
      'built 3 times, because the environment differs between requests (nonce)',
    )
  })

  test('with other values has a guard of its own, also if the values are read later', async () => {
    const { app } = guarded((env) => ({
      ...optionsFrom(env),
      clientAddress: () => (env as { address?: string }).address,
    }))
    const headers = await headersOf()
    for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.1']) {
      expect((await app.request('/', { headers }, { address })).status).toBe(200)
      expect(given.events.at(-1)?.address).toBe(address)
    }
  })
})
