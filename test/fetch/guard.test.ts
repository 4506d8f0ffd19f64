/** `portcullis/fetch` with what each framework passes to a handler. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as z from 'zod'
import {
  clientAddressOf,
  type GuardOptions,
  portcullis,
  requestIdOf,
} from '../../src/fetch/index.ts'
import { errorsLogged, json, ROLES, type Surroundings, surroundings } from '../hono/app.ts'

let given: Surroundings
let headers: { Authorization: string }
beforeAll(async () => {
  given = await surroundings()
  headers = await given.bearer(['writer'])
})
afterAll(() => given?.redis.close())
beforeEach(() => {
  given.events.length = 0
})

const guardOf = (more: Partial<GuardOptions> = {}) => {
  const { clientAddress, ...options } = given.options
  return portcullis<object, string, string>({ ...options, roles: ROLES, ...more })
}

const KNOWN = { clientAddress: () => '192.0.2.9' }

const id = z.strictObject({ id: z.coerce.number() })
const note = z.strictObject({ text: z.string() })
const requestOf = (init: RequestInit = {}) =>
  new Request('http://localhost/notes/7', { headers, ...init })

describe('a handler is called by', () => {
  test.each<[string, () => readonly unknown[], string]>([
    ['Next', () => [requestOf(), { params: Promise.resolve({ id: '7' }) }], 'unknown'],
    [
      'SvelteKit',
      () => [{ request: requestOf(), params: { id: '7' }, getClientAddress: () => '192.0.2.1' }],
      '192.0.2.1',
    ],
    ['Remix', () => [{ request: requestOf(), params: { id: '7' }, context: {} }], 'unknown'],
    [
      'Astro',
      () => [{ request: requestOf(), params: { id: '7' }, clientAddress: '192.0.2.2' }],
      'unknown',
    ],
    [
      'a hook of SvelteKit',
      () => [
        {
          event: { request: requestOf(), params: { id: '7' }, getClientAddress: () => '192.0.2.3' },
          resolve: () => {},
        },
      ],
      '192.0.2.3',
    ],
    [
      'Deno',
      () => [requestOf(), { params: { id: 7 }, remoteAddr: { hostname: '192.0.2.4' } }],
      '192.0.2.4',
    ],
  ])('%s, with its parameters, its address and its arguments', async (_, argsOf, address) => {
    const args = argsOf()
    const seen: unknown[] = []
    const handler = guardOf()
      .require('notes:read')
      .params(id)
      .handle((request, call) => {
        seen.push(call.caller.subject, call.valid.params, clientAddressOf(request), call.args)
        return new Response(requestIdOf(request))
      })
    let response = new Response()
    await errorsLogged(async () => {
      response = await handler(...args)
    })
    expect(response.headers.get('x-request-id')).toBe(await response.text())
    expect(seen).toEqual(['eve', { id: 7 }, address, args])
    expect(given.events).toMatchObject([{ decision: 'allow', status: 200, address }])
  })
})

test('the `clientAddress` of Astro, which a client can choose, is no address of a limit', async () => {
  const reached: string[] = []
  const handler = guardOf({ limits: { standard: '9/min' } })
    .public()
    .handle(() => {
      reached.push('notes')
      return new Response('notes')
    })
  let status = 0
  const log = await errorsLogged(async () => {
    const request = new Request('http://localhost/notes')
    status = (await handler({ request, clientAddress: '192.0.2.2' })).status
  })
  expect([status, reached]).toEqual([500, []])
  expect(log).toContain('clientAddress: no address of the client is known')
})

test('what a handler throws, such as a redirect, reaches the framework, and the event has its status', async () => {
  const guard = guardOf(KNOWN).require('notes:read')
  const redirect = Response.redirect('http://localhost/elsewhere', 303)
  const throwing = guard.handle(() => {
    throw redirect
  })
  await expect(throwing(requestOf())).rejects.toBe(redirect)
  const failing = guard.handle(() => Promise.reject(new Error('own')))
  await expect(failing(requestOf())).rejects.toThrow('own')
  expect(given.events.map(({ decision, status }) => [decision, status])).toEqual([
    ['allow', 303],
    ['allow', 500],
  ])
})

test('a response with immutable headers gets those of the guard', async () => {
  const handler = guardOf(KNOWN)
    .authenticated()
    .handle(() => Response.redirect('http://localhost/elsewhere', 303))
  const response = await handler(requestOf())
  expect([response.status, response.headers.get('location')]).toEqual([
    303,
    'http://localhost/elsewhere',
  ])
  expect(response.headers.get('x-request-id')).toBe(given.events[0]?.requestId)
})

test('a body that the guard has checked can be read again, and a body without a schema is limited', async () => {
  const guard = guardOf(KNOWN).require('notes:write')
  const checked = guard
    .body(note)
    .handle(async (request, { valid }) => Response.json([valid.body, await request.text()]))
  const text = '{ "text": "a" }'
  const answer = await checked(requestOf(json(text, headers)))
  expect(await answer.json()).toEqual([{ text: 'a' }, text])
  const limited = guard
    .maxBodyBytes(5)
    .handle(async (request) => new Response(await request.text()))
  const catching = guard.maxBodyBytes(5).handle(async (request) => {
    await request.text().catch(() => {
      throw new Error('own')
    })
    return new Response()
  })
  expect(await (await limited(requestOf(json('12345', headers)))).text()).toBe('12345')
  for (const handler of [limited, catching])
    expect((await handler(requestOf(json('123456', headers)))).status).toBe(413)
})

/** Next passes a proxy of a request, which `new Request()` of Node 24 does not accept. */
const proxied = (request: Request): Request =>
  new Proxy(request, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })

test('the body of a proxied request, as of Next, is checked, limited and read', async () => {
  const guard = guardOf(KNOWN)
  const seen: unknown[] = []
  const read = async (request: Request) => {
    seen.push(await request.json())
    return Response.json(null, { status: 201 })
  }
  const checked = guard.require('notes:write').body(note).maxBodyBytes(50).handle(read)
  const open = guard.require('notes:write').maxBodyBytes(50).handle(read)
  for (const handler of [checked, open]) {
    const send = (text: string) =>
      handler(proxied(requestOf(json(JSON.stringify({ text }), headers))))
    expect((await send('a')).status).toBe(201)
    expect((await send('a'.repeat(60))).status).toBe(413)
  }
  expect(seen).toEqual([{ text: 'a' }, { text: 'a' }])
})

test('the context of a middleware of Astro has a request whose body can be read, and is limited', async () => {
  const context = { request: new Request('http://localhost/a'), params: {} }
  const endpoint = async () => Response.json(await context.request.json())
  const onRequest = guardOf(KNOWN)
    .require('notes:write')
    .maxBodyBytes(20)
    .handle((_, { args }) => (args as readonly [unknown, () => Promise<Response>])[1]())
  const send = (text: string) => {
    context.request = requestOf(json(JSON.stringify(text), headers))
    return onRequest(context, endpoint)
  }
  expect(await (await send('a')).json()).toBe('a')
  expect((await send('a'.repeat(30))).status).toBe(413)
})

test('the event of a hook has a request whose body can be read, and is limited', async () => {
  const handle = guardOf(KNOWN)
    .authenticated()
    .maxBodyBytes(50)
    .handle(
      (
        _,
        {
          args: [{ event, resolve }],
        }: {
          args: readonly [
            {
              event: { request: Request }
              resolve: (event: { request: Request }) => Promise<Response>
            },
          ]
        },
      ) => resolve(event),
    )
  const resolve = async ({ request }: { request: Request }) => Response.json(await request.json())
  const send = (body: BodyInit) => {
    const init: RequestInit & { duplex: 'half' } = { method: 'POST', headers, body, duplex: 'half' }
    return handle({ event: { request: new Request('http://localhost/a', init) }, resolve })
  }
  expect(await (await send('[1]')).json()).toEqual([1])
  const long = new Blob([JSON.stringify('a'.repeat(60))]).stream()
  expect((await send(long)).status).toBe(413)
})

test('a body that was read before is a mistake of the app', async () => {
  const handler = guardOf(KNOWN)
    .require('notes:write')
    .body(note)
    .handle(() => new Response())
  const request = requestOf(json('{"text":"a"}', headers))
  await request.text()
  let response = new Response()
  const log = await errorsLogged(async () => {
    response = await handler(request)
  })
  expect([response.status, await response.json()]).toMatchObject([500, { code: 'internal_error' }])
  expect(log).toContain('must run before the middleware that has read the body')
})

test('an open response ends after the revocation of its token', async () => {
  const guard = guardOf({ ...KNOWN, recheckSeconds: 1 })
  const handler = guard.authenticated().handle((request) => {
    const tick = new TextEncoder().encode('data: tick\n\n')
    const body = new ReadableStream({
      async start(controller) {
        controller.enqueue(tick)
        await guard.revoke(request)
      },
    })
    return new Response(body, { headers: { 'Content-Type': 'text/event-stream' } })
  })
  const response = await handler(requestOf({ headers: await given.bearer() }))
  expect(response.status).toBe(200)
  await expect(response.text()).rejects.toThrow()
  expect(given.events.at(-1)?.reason).toMatch(/^stream_ended:token_revoked/)
})

test('a handler that is called without a request is a mistake of the app', async () => {
  const handler = guardOf(KNOWN)
    .public()
    .handle(() => new Response())
  await expect(handler()).rejects.toThrow(/call the handler with a Request/)
})
