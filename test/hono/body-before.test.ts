/** Middlewares of the app that read the body before the guard or a guard of a route does. */
import { type Context, Hono } from 'hono'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import * as z from 'zod'
import { errorsLogged, guardWith, json, type Surroundings, surroundings } from './app.ts'

let given: Surroundings

beforeAll(async () => {
  given = await surroundings()
})

afterAll(() => given?.redis.close())

type Read = (c: Context) => unknown

/** An app whose middleware reads the body before the guard, or between it and the guard of the route. */
function appWith(read: Read, isBefore = true) {
  let reached = 0
  const guard = guardWith(given)
  const app = new Hono()
  if (isBefore)
    app.use(async (c, next) => {
      await read(c)
      await next()
    })
  app.use(guard)
  if (!isBefore)
    app.use(async (c, next) => {
      await read(c)
      await next()
    })
  const text = z.strictObject({ text: z.string() })
  app.post('/notes', guard.require('notes:write').body(text).maxBodyBytes(100), (c) => {
    reached++
    return c.json(c.req.valid('json'))
  })
  app.post('/raw', guard.require('notes:write').maxBodyBytes(100), async (c) => {
    reached++
    return c.text(await c.req.text())
  })
  return { app, reached: () => reached }
}

const READERS: readonly (readonly [string, Read])[] = [
  ['text', (c) => c.req.text()],
  ['json', (c) => c.req.json()],
  ['arrayBuffer', (c) => c.req.arrayBuffer()],
  ['blob', (c) => c.req.blob()],
]

const ADVICE =
  'on POST /notes: app.use(guard) must run before the middleware that has read the body'

describe.each([
  ['before the guard', true],
  ['between the guard and the guard of the route', false],
] as const)('a body that was read %s', (_, isBefore) => {
  const headers = () => given.bearer(['writer'])

  test.each(READERS)('by c.req.%s() is checked, and reaches the handler', async (_, read) => {
    const { app } = appWith(read, isBefore)
    const checked = await app.request('/notes', json('{"text":"ä"}', await headers()))
    expect([checked.status, await checked.json()]).toEqual([200, { text: 'ä' }])
    const raw = await app.request('/raw', json('"as it is"', await headers()))
    expect([raw.status, await raw.text()]).toEqual([200, '"as it is"'])
  })

  test.each([
    ['does not match the schema', '{"text":1}', 422],
    ['has duplicate names', '{"text":"a","text":"b"}', 400],
    ['is too large', JSON.stringify({ text: 'x'.repeat(200) }), 413],
  ])('is refused if it %s', async (_, body, status) => {
    const { app, reached } = appWith((c) => c.req.text(), isBefore)
    const response = await app.request('/notes', json(body, await headers()))
    expect(response.status).toBe(status)
    // Without Content-Length, as a stream.
    const stream = new Blob([body]).stream()
    const init = { ...json('', await headers()), body: stream, duplex: 'half' } as RequestInit
    expect((await app.request('/notes', init)).status).toBe(status)
    expect(reached()).toBe(0)
  })

  test.each([
    ['without Hono', (c: Context) => c.req.raw.text()],
    ['without Hono, and not to its end', (c: Context) => void c.req.raw.body?.getReader()],
  ])('%s is a 500, and the log says what to do', async (_, read) => {
    const { app, reached } = appWith(read, isBefore)
    const log = await errorsLogged(async () => {
      const response = await app.request('/notes', json('{"text":"a"}', await headers()))
      expect(response.status).toBe(500)
      expect(await response.json()).toMatchObject({ code: 'internal_error' })
    })
    expect(reached()).toBe(0)
    expect(log).toContain(ADVICE)
  })
})

test('a form that was read before the guard reaches the handler', async () => {
  const { app } = appWith((c) => c.req.parseBody())
  const body = new URLSearchParams({ text: 'a' })
  const init = { method: 'POST', body, headers: await given.bearer(['writer']) }
  expect(await (await app.request('/raw', init)).text()).toBe('text=a')
})
