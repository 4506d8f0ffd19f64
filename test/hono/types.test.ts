/** What TypeScript infers for an app behind a guard: nothing is run. */
import { Hono } from 'hono'
import { hc } from 'hono/client'
import { describe, expectTypeOf, test } from 'vitest'
import * as z from 'zod'
import type { App } from '../../examples/hono/app.ts'
import {
  type Guard,
  type GuardEnv,
  type IssuerOptions,
  type Principal,
  portcullis,
} from '../../src/hono/index.ts'

interface Env {
  readonly REDIS_URL: string
  readonly REDIS_TOKEN: string
}

const guard = portcullis((env: Env) => ({
  issuers: [{ issuer: 'https://issuer.test', audience: 'notes' }],
  redis: { url: env.REDIS_URL, token: env.REDIS_TOKEN },
  roles: { reader: ['notes:read'] },
  limits: { standard: '100/min', expensive: '10/min' },
}))

describe('c.var', () => {
  test('has a caller that is not null behind require and authenticated', () => {
    const app = new Hono().use(guard)
    app.get('/', guard.require('notes:read'), (c) => {
      expectTypeOf(c.var.caller).toEqualTypeOf<Principal>()
      expectTypeOf(c.get('caller')).toEqualTypeOf<Principal>()
      return c.text('')
    })
    app.get('/', guard.authenticated(), (c) => {
      expectTypeOf(c.var.caller).toEqualTypeOf<Principal>()
      return c.text('')
    })
  })

  test('has a caller behind a guard of a route, if the app does not chain use', () => {
    const app = new Hono()
    app.use(guard)
    app.get('/', guard.require('notes:read'), (c) => {
      expectTypeOf(c.var.caller.subject).toEqualTypeOf<string>()
      return c.text('')
    })
    app.get('/', guard.public(), (c) => {
      expectTypeOf(c.var.caller).toEqualTypeOf<Principal | null>()
      return c.text('')
    })
  })

  test('has a caller that may be null on other routes, and the bindings of the environment', () => {
    new Hono().use(guard).get('/', (c) => {
      expectTypeOf(c.var.caller).toEqualTypeOf<Principal | null>()
      expectTypeOf(c.env.REDIS_URL).toEqualTypeOf<string>()
      return c.text('')
    })
    new Hono<GuardEnv<Env>>().get('/', guard.public(), (c) => {
      expectTypeOf(c.var.caller).toEqualTypeOf<Principal | null>()
      expectTypeOf(c.env.REDIS_URL).toEqualTypeOf<string>()
      return c.text('')
    })
  })

  test('keeps the variables and bindings of the app', () => {
    type AppEnv = { Bindings: { readonly OWN: number }; Variables: { own: boolean } }
    new Hono<AppEnv>().use(guard).get('/', guard.require('notes:read'), (c) => {
      expectTypeOf(c.var.own).toEqualTypeOf<boolean>()
      expectTypeOf(c.env.OWN).toEqualTypeOf<number>()
      expectTypeOf(c.var.caller).toEqualTypeOf<Principal>()
      return c.text('')
    })
  })
})

describe('c.req.valid', () => {
  const note = z.object({ text: z.string(), at: z.iso.date().transform((text) => new Date(text)) })
  const page = z.object({ limit: z.coerce.number().default(20), after: z.string().optional() })

  test('has the output of each schema', () => {
    new Hono().use(guard).post(
      '/notes/:id',
      guard
        .require('notes:write')
        .limit('expensive')
        .params(z.object({ id: z.string() }))
        .query(page)
        .headers(z.object({ 'x-device': z.string() }))
        .body(note),
      (c) => {
        expectTypeOf(c.req.valid('json')).toEqualTypeOf<{ text: string; at: Date }>()
        expectTypeOf(c.req.valid('query')).toEqualTypeOf<{
          limit: number
          after?: string | undefined
        }>()
        expectTypeOf(c.req.valid('param')).toEqualTypeOf<{ id: string }>()
        expectTypeOf(c.req.valid('header')).toEqualTypeOf<{ 'x-device': string }>()
        expectTypeOf(c.req.param('id')).toEqualTypeOf<string>()
        return c.text('')
      },
    )
  })

  test('contains only input that a schema checks', () => {
    new Hono().use(guard).post('/notes', guard.require('notes:write').body(note), (c) => {
      // @ts-expect-error: the route declares no query
      c.req.valid('query')
      return c.text('')
    })
    new Hono().use(guard).post('/notes', guard.require('notes:write'), (c) => {
      // @ts-expect-error: the route declares no body
      c.req.valid('json')
      return c.text('')
    })
  })
})

test('only limits of the options are accepted', () => {
  guard.require('notes:read').limit('expensive')
  // @ts-expect-error: no such limit; an environment could have one, so nothing is thrown here
  guard.require('notes:read').limit('costly')
})

describe('options', () => {
  const redis = { url: 'https://redis.test', token: 'secret' }
  const issuers = [{ issuer: 'https://issuer.test', audience: 'notes' }]
  const complete: IssuerOptions = {
    preset: 'auth0',
    issuer: 'https://issuer.test/',
    audience: ['notes', 'other'],
    rolesClaim: 'https://notes.test/roles',
    rolesMap: { Readers: 'reader' },
    typ: ['at+jwt', 'JWT'],
    clients: ['web'],
    require: { token_use: ['access', null] },
  }
  // The functions are compiled, and never called: the options without a Redis are wrong.
  const declared = (_: () => unknown) => undefined

  test('have every field of an issuer, in both forms', () => {
    expectTypeOf(complete).toExtend<IssuerOptions>()
    declared(() => portcullis({ issuers: [complete], redis }))
    declared(() => portcullis((_: Env) => ({ issuers: [complete], redis })))
    declared(() =>
      portcullis((env: Env) => ({
        issuers: [{ preset: 'auth0', issuer: env.REDIS_URL, audience: 'notes', typ: ['JWT'] }],
        redis,
      })),
    )
  })

  test('of an object have no other names', () => {
    // @ts-expect-error: roles is misspelled
    declared(() => portcullis({ issuers, redis, rolls: {} }))
    // @ts-expect-error: tokens is no option of redis
    declared(() => portcullis({ issuers, redis: { ...redis, tokens: '' } }))
    // @ts-expect-error: no such preset
    declared(() => portcullis({ issuers: [{ ...complete, preset: 'nonsense' }], redis }))
    // @ts-expect-error: rolesClaim is misspelled
    declared(() => portcullis({ issuers: [{ issuer: '', audience: '', roleClaim: '' }], redis }))
  })

  test('of a function have no other names', () => {
    // @ts-expect-error: roles is misspelled
    declared(() => portcullis((_: Env) => ({ issuers, redis, rolls: {} })))
    // @ts-expect-error: tokens is no option of redis
    declared(() => portcullis((_: Env) => ({ issuers, redis: { ...redis, tokens: '' } })))
    // @ts-expect-error: no such preset
    declared(() => portcullis((_: Env) => ({ issuers: [{ ...complete, preset: 'no' }], redis })))
    // @ts-expect-error: rolesClaim is misspelled
    declared(() => portcullis((_: Env) => ({ issuers: [{ ...complete, roleClaim: '' }], redis })))
  })

  test('of a function infer the names of limits and permissions', () => {
    type Names<G> =
      G extends Guard<Env, infer Limit extends string, infer Permission extends string>
        ? [Limit, Permission]
        : never
    expectTypeOf<Names<typeof guard>>().toEqualTypeOf<['standard' | 'expensive', 'notes:read']>()
  })

  test('of a function may contain a client of Redis, and functions', () => {
    const client = { send: async () => [], own: 1 }
    declared(() =>
      portcullis((_: Env) => ({
        issuers,
        redis: client,
        clientAddress: (c) => c.req.header('x-real-ip'),
      })),
    )
  })
})

describe('hc infers', () => {
  const client = hc<App>('http://localhost')

  test('the query as text, and the response', () => {
    type Get = typeof client.notes.$get
    expectTypeOf<Parameters<Get>[0]>().toEqualTypeOf<{ query: { limit?: string } }>()
    const read = async () => (await client.notes.$get({ query: { limit: '5' } })).json()
    expectTypeOf(read).returns.resolves.toEqualTypeOf<{ notesOf: string; limit: number }>()
  })

  test('the input of the body, and the response', () => {
    type Post = typeof client.notes.$post
    expectTypeOf<Parameters<Post>[0]>().toEqualTypeOf<{ json: { text: string } }>()
    const write = async () => (await client.notes.$post({ json: { text: 'a' } })).json()
    expectTypeOf(write).returns.resolves.toEqualTypeOf<{ text: string }>()
  })

  test('a public route without input', () => {
    const about = async () => (await client.about.$get()).json()
    expectTypeOf(about).returns.resolves.toEqualTypeOf<{ caller: string | null }>()
  })
})
