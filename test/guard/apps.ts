/** The same guarded app in each framework: real servers, or a function that gets requests. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import middie from '@fastify/middie'
import express, { type Handler } from 'express'
import express4 from 'express4'
import fastify, { type Request as FastifyRequest, type Reply } from 'fastify'
import { Hono } from 'hono'
import * as z from 'zod'
import { portcullis as guardExpress } from '../../src/express/index.ts'
import { portcullis as guardFetch } from '../../src/fetch/index.ts'
import { type GuardOptions, portcullis as guardHono } from '../../src/hono/index.ts'

/** Options that every framework takes. */
export type Options = Omit<GuardOptions, 'clientAddress'>

export interface GuardedApp {
  /** Of its server. Undefined: it has none. */
  readonly url: string | undefined
  /** The handlers that ran. */
  readonly reached: string[]
  request(path: string, init?: RequestInit): Promise<Response>
  close(): Promise<void>
}

const note = z.strictObject({ text: z.string().min(1).max(10) })
const page = z.strictObject({ limit: z.coerce.number().int().max(100).default(20) })
const id = z.strictObject({ id: z.coerce.number().int() })

type Start = (options: Options) => Promise<GuardedApp>

async function startHono(options: Options): Promise<GuardedApp> {
  const guard = guardHono<object, string, string>(options)
  const reached: string[] = []
  const app = new Hono().use(guard)
  app.get('/notes', guard.require('notes:read').query(page), (c) => {
    reached.push('read')
    return c.json({ of: c.var.caller.subject, ...c.req.valid('query') })
  })
  app.get('/notes/:id', guard.require('notes:read').params(id), (c) => {
    reached.push('one')
    return c.json(c.req.valid('param'))
  })
  app.post('/notes', guard.require('notes:write').body(note).maxBodyBytes(100), (c) => {
    reached.push('write')
    return c.json(c.req.valid('json'), 201)
  })
  app.get('/search', guard.require('notes:read').limit('expensive'), (c) => {
    reached.push('search')
    return c.json(null)
  })
  app.get('/mine', (c) => {
    reached.push('mine')
    return c.json(c.get('caller' as never))
  })
  app.get('/about', guard.public(), (c) => {
    reached.push('about')
    return c.json(c.var.caller?.subject ?? null)
  })
  app.post('/logout', guard.authenticated(), async (c) => {
    await guard.revoke(c)
    return c.body(null, 204)
  })
  return {
    url: undefined,
    reached,
    request: async (path, init) => app.request(path, init),
    async close() {},
  }
}

const startExpress =
  (make: typeof express): Start =>
  async (options) => {
    const guard = guardExpress<object, string, string>(options)
    const reached: string[] = []
    const app = make()
    app.get('/about', guard.public(), (req, res) => {
      reached.push('about')
      res.json(req.caller?.subject ?? null)
    })
    app.use(guard)
    app.use(express.json())
    app.get('/notes', guard.require('notes:read').query(page), (req, res) => {
      reached.push('read')
      res.json({ of: req.caller?.subject, ...(req.valid?.query as object) })
    })
    app.get('/notes/:id', guard.require('notes:read').params(id), (req, res) => {
      reached.push('one')
      res.json(req.valid?.params)
    })
    app.post('/notes', guard.require('notes:write').body(note).maxBodyBytes(100), (req, res) => {
      reached.push('write')
      res.status(201).json(req.body)
    })
    app.get('/search', guard.require('notes:read').limit('expensive'), (_, res) => {
      reached.push('search')
      res.json(null)
    })
    app.get('/mine', (req, res) => {
      reached.push('mine')
      res.json(req.caller?.subject)
    })
    app.post('/logout', guard.authenticated(), async (req, res) => {
      await guard.revoke(req)
      res.status(204).end()
    })
    return { ...(await listen(app)), reached }
  }

async function startFastify(options: Options): Promise<GuardedApp> {
  const guard = guardExpress<object, string, string>(options)
  const reached: string[] = []
  const app = fastify()
  await app.register(middie)
  app.use(guard)
  /** As in docs/express.md. */
  const before = (handler: Handler) => ({
    preHandler({ raw, params, body }: FastifyRequest, reply: Reply, done: () => void) {
      handler(Object.assign(raw, { params, body }) as never, reply.raw as never, done)
    },
  })
  app.get('/notes', before(guard.require('notes:read').query(page)), ({ raw }, reply) => {
    reached.push('read')
    return reply.send({ of: raw.caller?.subject, ...(raw.valid?.query as object) })
  })
  app.get('/notes/:id', before(guard.require('notes:read').params(id)), ({ raw }, reply) => {
    reached.push('one')
    return reply.send(raw.valid?.params)
  })
  const writes = guard.require('notes:write').body(note).maxBodyBytes(100)
  app.post('/notes', before(writes), ({ raw }, reply) => {
    reached.push('write')
    return reply.code(201).send(raw.valid?.body)
  })
  app.get('/search', before(guard.require('notes:read').limit('expensive')), (_, reply) => {
    reached.push('search')
    return reply.send('null')
  })
  app.get('/mine', ({ raw }, reply) => {
    reached.push('mine')
    return reply.send(raw.caller)
  })
  app.post('/logout', before(guard.authenticated()), async ({ raw }, reply) => {
    await guard.revoke(raw)
    return reply.code(204).send('')
  })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  return { ...requester(url), reached, close: () => app.close() }
}

async function startFetch(options: Options): Promise<GuardedApp> {
  const guard = guardFetch<object, string, string>(options)
  const reached: string[] = []
  type Routed = (request: Request, context: object) => Promise<Response>
  const answer = (name: string, value: unknown, status = 200) => {
    reached.push(name)
    return Response.json(value, { status })
  }
  const routes: Readonly<Record<string, Routed>> = {
    'GET /notes': guard
      .require('notes:read')
      .query(page)
      .handle((_, { caller, valid }) => answer('read', { of: caller.subject, ...valid.query })),
    'GET /notes/7': guard
      .require('notes:read')
      .params(id)
      .handle((_, { valid }) => answer('one', valid.params)),
    'POST /notes': guard
      .require('notes:write')
      .body(note)
      .maxBodyBytes(100)
      .handle((_, { valid }) => answer('write', valid.body, 201)),
    'GET /search': guard
      .require('notes:read')
      .limit('expensive')
      .handle(() => answer('search', null)),
    'GET /mine': guard.authenticated().handle((_, { caller }) => answer('mine', caller.subject)),
    'GET /about': guard
      .public()
      .handle((_, { caller }) => answer('about', caller?.subject ?? null)),
    'POST /logout': guard.authenticated().handle(async (request) => {
      await guard.revoke(request)
      return new Response(null, { status: 204 })
    }),
  }
  return {
    url: undefined,
    reached,
    request(path, init) {
      const request = new Request(`http://localhost${path}`, init)
      const route = `${request.method === 'HEAD' ? 'GET' : request.method} ${path.split('?')[0]}`
      const params = { id: path.split('/').at(-1) }
      const handler = routes[route] ?? routes['GET /mine']
      if (handler === undefined) throw new Error(`no handler for ${route}`)
      return handler(request, { params: Promise.resolve(params) })
    },
    async close() {},
  }
}

/** Starts a server for an app. */
export async function listen(app: RequestListener): Promise<Omit<GuardedApp, 'reached'>> {
  const server = createServer(app)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    ...requester(`http://127.0.0.1:${port}`),
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

const requester = (url: string) => ({
  url,
  request: (path: string, init?: RequestInit) => fetch(url + path, init),
})

export const FRAMEWORKS: readonly (readonly [string, Start])[] = [
  ['portcullis/hono', startHono],
  ['portcullis/express in Express 5', startExpress(express)],
  ['portcullis/express in Express 4', startExpress(express4)],
  ['portcullis/express in Fastify', startFastify],
  ['portcullis/fetch', startFetch],
]
