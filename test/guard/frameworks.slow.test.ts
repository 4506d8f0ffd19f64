/** The apps of `examples/frameworks`, from the packed package and the newest packages of npm, probed from outside. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeTarballs, type Tarballs } from '../create/tarballs.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { createKey, mint, type TestKey } from '../harness/issuer.ts'
import { IS_LONG } from '../harness/long.ts'
import { getRaw, sendRaw } from '../harness/raw.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { type FrameworkApp, type Recipe, startFrameworkApp } from './framework-app.ts'
import { type Bearer, BYPASS_FIELDS, REFUSED_OUTSIDE, SPELLINGS } from './outside-probes.ts'

interface Framework extends Recipe {
  /** Targets that are tried without a token, besides those of every app. */
  readonly targets?: readonly string[]
  /** Targets that an allowed caller reaches. The response is never one for another caller. */
  readonly open?: readonly string[]
  /** The packages whose versions the run prints. */
  readonly shows: readonly string[]
  /** In front of the routes. Default: none. */
  readonly prefix?: string
  /** Whether each route has an isolate, and so a store, of its own. Default: false. */
  readonly isolatesRoutes?: boolean
  /** A header that names the client's address, which a proxy would set. Default: that of the connection. */
  readonly addressField?: string
}

const LISTENING = /Listening on/

/** A route of Next that would be static, if it did not read the request. */
const NEXT_ROUTE = (folder: string, setting: string) => `
import { guard } from '${folder}/guard'
import { notesOf } from '${folder}/notes'

export ${setting}
export const GET = guard
  .require('notes:read')
  .handle((_request, { caller }) =>
    Response.json({ notes: notesOf(caller.subject), of: caller.subject }),
  )
`

const NEXT: Framework = {
  name: 'next',
  files: {
    'app/revalidated/route.ts': NEXT_ROUTE('../..', 'const revalidate = 60'),
    'app/listed/[id]/route.ts': NEXT_ROUTE(
      '../../..',
      "const generateStaticParams = () => [{ id: '1' }]",
    ),
  },
  open: ['/revalidated', '/listed/1', '/listed/2'],
  targets: ['/revalidated', '/listed/1', '/listed/2', '/_next/data/build/notes.json'],
  isBuilt: true,
  start: ['next', 'start', '--hostname', '127.0.0.1'],
  ready: /Ready in/,
  shows: ['next'],
  addressField: 'x-real-ip',
}

const FRAMEWORKS: Readonly<Record<string, Framework>> = {
  'Express 5': { name: 'express', start: ['node', 'app.ts'], ready: LISTENING, shows: ['express'] },
  'Express 4': {
    name: 'express',
    variant: '-4',
    instead: ['express@4'],
    start: ['node', 'app.ts'],
    ready: LISTENING,
    shows: ['express'],
  },
  'Express 5, Node 22': {
    name: 'express',
    variant: '-22',
    instead: ['node@22'],
    start: ['node', 'app.ts'],
    ready: LISTENING,
    shows: ['express', 'node'],
  },
  Fastify: { name: 'fastify', start: ['node', 'app.ts'], ready: LISTENING, shows: ['fastify'] },
  Nest: {
    name: 'nest',
    store: 'src/notes.ts',
    isBuilt: true,
    start: ['node', 'dist/main.js'],
    ready: LISTENING,
    shows: ['@nestjs/core'],
  },
  Next: NEXT,
  'Next, Edge runtime': {
    ...NEXT,
    files: {},
    open: [],
    variant: '-edge',
    isolatesRoutes: true,
    inRoutes: "\nexport const runtime = 'edge'\n",
  },
  'Express, mounted and rewritten': {
    name: 'express',
    variant: '-mounted',
    start: ['node', 'app.ts'],
    ready: LISTENING,
    shows: ['express'],
    changes: [
      ['app.ts', 'app.use(guard)\n', ''],
      [
        'app.ts',
        'const app = express()\n',
        `const app = express()
app.use((req: Request, _res: Response, next: () => void) => {
  if (req.url === '/old') req.url = '/notes'
  next()
})
const inner = express.Router()
inner.get('/list', guard.require('notes:read'), (req: Request, res: Response) =>
  res.json({ notes: notesOf(req.caller?.subject ?? '') }),
)
app.use('/inner', inner)
app.use('/mine', guard)
`,
      ],
    ],
    open: ['/inner/list', '/inner/list/', '/INNER/list', '/old'],
    targets: [
      '/inner/list',
      '/inner/list/',
      '/INNER/LIST',
      '/inner//list',
      '/old',
      '/inner/%6cist',
    ],
  },
  'Fastify, loose paths and plugins': {
    name: 'fastify',
    variant: '-loose',
    start: ['node', 'app.ts'],
    ready: LISTENING,
    shows: ['fastify'],
    changes: [
      [
        'app.ts',
        'const app = Fastify()',
        `const app = Fastify({
  routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, caseSensitive: false },
  rewriteUrl: ({ url = '/' }) => (url === '/old' ? '/notes' : url),
})`,
      ],
      [
        'app.ts',
        "app.post('/logout'",
        `app.register(
  async (plugin) => {
    plugin.get('/list', ({ raw }) => ({ notes: notesOf(raw.caller?.subject ?? '') }))
  },
  { prefix: '/inner' },
)
app.post('/logout'`,
      ],
    ],
    open: ['/notes/', '/NOTES', '/old', '/inner/list', '/INNER/list/'],
    targets: ['/old', '/inner/list', '/inner//list', '/INNER/list/'],
  },
  'Nest, prefix and versions': {
    name: 'nest',
    variant: '-versions',
    store: 'src/notes.ts',
    isBuilt: true,
    start: ['node', 'dist/main.js'],
    ready: LISTENING,
    shows: ['@nestjs/core'],
    changes: [
      [
        'src/main.ts',
        'app.useGlobalGuards',
        `app.setGlobalPrefix('api')
app.enableVersioning({ type: VersioningType.URI, defaultVersion: ['1', VERSION_NEUTRAL] })
app.useGlobalGuards`,
      ],
      [
        'src/main.ts',
        'import { NestFactory }',
        `import { VERSION_NEUTRAL, VersioningType } from '@nestjs/common'
import { NestFactory }`,
      ],
    ],
    prefix: '/api',
    open: ['/v1/notes', '/notes/', '/NOTES', '/V1/notes/'],
    targets: ['/v1/notes', '/v1/notes/', '/V1/NOTES', '/v1//notes', '/v1/notes/0', '/v2/notes'],
  },
  'SvelteKit, a hook': {
    name: 'sveltekit',
    variant: '-hook',
    store: 'src/lib/notes.ts',
    isBuilt: true,
    start: ['node', 'build'],
    ready: LISTENING,
    shows: ['@sveltejs/kit'],
    files: {
      'src/hooks.server.ts': `
import { guard } from './lib/guard'

const closed = guard
  .authenticated()
  .handle((_, { args: [{ event, resolve }] }: { args: readonly any[] }) => resolve(event))
export const handle = (call: { event: { url: URL } }) =>
  call.event.url.pathname === '/about' ? (call as any).resolve(call.event) : closed(call)
`,
      'src/routes/page/+page.server.ts': `
import { notesOf } from '../../lib/notes'

export const load = () => ({ notes: notesOf('page') })
export const actions = {
  default: async ({ request }: { request: Request }) => {
    return { notes: notesOf(String((await request.formData()).get('owner'))) }
  },
}
`,
      'src/routes/page/+page.svelte': '<h1>Page</h1>',
      'src/routes/list/+server.ts': `
import { notesOf } from '../../lib/notes'

export const GET = () => Response.json({ notes: notesOf('list') })
`,
    },
    open: ['/list', '/page/__data.json'],
    targets: ['/page', '/page/', '/page/__data.json', '/page.html__data.json', '/list', '/list/'],
  },
  SvelteKit: {
    name: 'sveltekit',
    store: 'src/lib/notes.ts',
    isBuilt: true,
    start: ['node', 'build'],
    ready: LISTENING,
    shows: ['@sveltejs/kit', '@sveltejs/adapter-node'],
  },
  'React Router': {
    name: 'react-router',
    store: 'app/notes.ts',
    isBuilt: true,
    start: ['react-router-serve', 'build/server/index.js'],
    ready: /http:/,
    shows: ['react-router'],
    addressField: 'x-real-ip',
    targets: [
      '/notes.data',
      '/notes.data?_routes=routes%2Fnotes',
      '/notes/0.data',
      '/mine.data',
      '/notes?_data=routes%2Fnotes',
      '/__manifest?paths=%2Fnotes&version=1',
    ],
  },
  Astro: {
    name: 'astro',
    store: 'src/lib/notes.ts',
    isBuilt: true,
    start: ['node', 'dist/server/entry.mjs'],
    ready: /listening on/,
    shows: ['astro', '@astrojs/node'],
    addressField: 'x-real-ip',
    targets: [
      '/notes/index',
      '/notes.html',
      '/notes/0.html',
      '/_server-islands/notes',
      '/_image?href=/notes',
    ],
  },
}

const ONLY = process.env.FRAMEWORK

describe.runIf(IS_LONG)('guarded apps of other frameworks', () => {
  let tarballs: Tarballs
  let redis: TestRedis
  let key: TestKey
  let issuer: TestServer

  beforeAll(async () => {
    redis = await startTestRedis()
    key = await createKey('frameworks')
    issuer = await startHttpServer((_, response) => {
      const { url } = issuer
      response.setHeader('Content-Type', 'application/json')
      response.end(JSON.stringify({ issuer: url, jwks_uri: `${url}/jwks`, keys: [key.publicJwk] }))
    })
    tarballs = await makeTarballs()
  })
  afterAll(async () => {
    await issuer?.close()
    await redis?.close()
    await tarballs?.close()
  })

  let subjects = 0
  const bearer: Bearer = async (roles = ['reader'], { claims, header } = {}) => {
    subjects += 1
    const own = {
      iss: issuer.url,
      aud: 'https://notes.example.com',
      sub: `user-${subjects}`,
      roles,
    }
    const token = await mint(key, { claims: { ...own, ...claims }, ...(header && { header }) })
    return { Authorization: `Bearer ${token}` }
  }

  const chosen = Object.entries(FRAMEWORKS).filter(([name]) => ONLY === undefined || name === ONLY)
  describe.each(chosen)('%s', (_, framework) => {
    let app: FrameworkApp
    const { prefix = '', addressField, isolatesRoutes = false, targets = [], open = [] } = framework

    beforeAll(async () => {
      // Bad tokens for several apps from one address would ban it.
      await redis.direct.flushall()
      app = await startFrameworkApp(tarballs.folder, tarballs.portcullis, framework, {
        ISSUER: issuer.url,
        REDIS_URL: redis.redisUrl,
        UPSTASH_REDIS_REST_URL: redis.url,
        UPSTASH_REDIS_REST_TOKEN: redis.token,
      })
      console.info(await app.versions(framework.shows))
    }, 480_000)
    afterAll(() => app?.stop())

    const request = (path: string, init: RequestInit = {}) => {
      const headers = new Headers(init.headers)
      if (addressField !== undefined) headers.set(addressField, '192.0.2.7')
      return fetch(app.url + prefix + path, { redirect: 'manual', ...init, headers })
    }
    const json = async (path: string, init?: RequestInit) => {
      const response = await request(path, init)
      return { status: response.status, body: (await response.json()) as unknown }
    }
    /** Returns what handlers have done since the last call. */
    let seen = 0
    const reached = () => {
      const all = app.reached()
      const since = all.slice(seen)
      seen = all.length
      return since
    }

    test('an allowed caller reads and writes own notes', async () => {
      const headers = { ...(await bearer(['writer'])), 'Content-Type': 'application/json' }
      const written = await json('/notes', { method: 'POST', headers, body: '{"text":"a"}' })
      expect(written).toEqual({ status: 201, body: { note: 'a' } })
      expect(await json('/notes', { headers })).toEqual({ status: 200, body: { notes: ['a'] } })
      const note = isolatesRoutes ? null : 'a'
      expect(await json('/notes/0', { headers })).toEqual({ status: 200, body: { note } })
      expect(reached()).toEqual(['addNote', 'notesOf', 'notesOf'])
      const others = await json('/notes', { headers: await bearer() })
      expect(others).toEqual({ status: 200, body: { notes: [] } })
      const head = await request('/notes', { method: 'HEAD', headers })
      expect([head.status, await head.text()]).toEqual([200, ''])
      reached()
    })

    test.each(REFUSED_OUTSIDE)(
      '$name is $status, and reaches no handler',
      async ({ path = '/notes', method = 'GET', headers, body, status, code }) => {
        const init: RequestInit = { method, headers: { ...(await headers?.(bearer)) } }
        if (body !== undefined) init.body = body
        const response = await request(path, init)
        const text = await response.text()
        expect([response.status, text === '' ? '' : JSON.parse(text).code]).toEqual([status, code])
        expect(response.headers.get('cache-control')).toBe('no-store')
        expect(reached()).toEqual([])
      },
    )

    test('OPTIONS without a token reaches no handler', async () => {
      await request('/notes', { method: 'OPTIONS' })
      expect(reached()).toEqual([])
    })

    test('a caller over the limit of a route is 429', async () => {
      const headers = { ...(await bearer(['writer'])), 'Content-Type': 'application/json' }
      const statuses: number[] = []
      for (let i = 0; i < 11; i += 1) {
        const response = await request('/notes', { method: 'POST', headers, body: '{"text":"a"}' })
        statuses.push(response.status)
        await response.text()
      }
      expect(statuses).toEqual([...Array.from({ length: 10 }, () => 201), 429])
      expect(reached().filter((what) => what === 'addNote')).toHaveLength(10)
    })

    test('a public route is open, and has the address that no client can choose', async () => {
      const address = addressField === undefined ? '127.0.0.1' : '192.0.2.7'
      const forged = { 'X-Forwarded-For': '198.51.100.1', 'CF-Connecting-IP': '198.51.100.2' }
      const anonymous = await json('/about', { headers: forged })
      expect(anonymous).toEqual({ status: 200, body: { caller: null, address } })
      const claims = { sub: 'eve' }
      const known = await json('/about', { headers: await bearer(['reader'], { claims }) })
      expect(known.body).toEqual({ caller: 'eve', address })
    })

    test('a revoked token is refused', async () => {
      const headers = await bearer()
      expect((await request('/notes', { headers })).status).toBe(200)
      // SvelteKit refuses a POST without a type, because a form of another site could send it.
      const typed = { ...headers, 'Content-Type': 'application/json' }
      expect(
        (await request('/logout', { method: 'POST', headers: typed, body: '{}' })).status,
      ).toBe(204)
      reached()
      expect((await request('/notes', { headers })).status).toBe(401)
      expect(reached()).toEqual([])
    })

    test.runIf(open.length > 0)(
      'a response for an allowed caller is never one for the next caller',
      async () => {
        for (const path of open) {
          const allowed = await request(path, { headers: await bearer() })
          expect([path, allowed.status]).toEqual([path, 200])
          await allowed.text()
          expect(reached(), path).toEqual(['notesOf'])
          const next = await request(path)
          expect([path, next.status]).toEqual([path, 401])
          await next.text()
          expect(reached()).toEqual([])
        }
      },
    )

    test.each([...SPELLINGS, ...targets])(
      'without a token, %s reaches no handler',
      async (target) => {
        const path = target.startsWith('http') ? target : prefix + target
        const fields = [`${addressField ?? 'x-none'}: 192.0.2.7`]
        const { status, text } = await getRaw(app.url, path, fields)
        expect(text).not.toContain('"notes"')
        expect(status).not.toBe(0)
        expect(reached()).toEqual([])
      },
    )

    test.each(BYPASS_FIELDS)('without a token, %s: %s opens no route', async (name, value) => {
      const fields = [`${name}: ${value}`, `${addressField ?? 'x-none'}: 192.0.2.7`]
      const answers = await Promise.all(
        ['/notes', '/mine'].map((path) => getRaw(app.url, prefix + path, fields)),
      )
      // Next redirects a request for a page to a URL with a query.
      const refusals = name === 'rsc' ? [401, 307] : [401]
      for (const { status } of answers) expect(refusals).toContain(status)
      expect(reached()).toEqual([])
    })

    test('a method in lower case, or none that exists, reaches no handler', async () => {
      for (const method of ['get', 'FOO', 'TRACE', 'PROPFIND', 'CONNECT']) {
        const lines = [`${method} ${prefix}/notes HTTP/1.1`, 'Host: a', 'Connection: close']
        await sendRaw(app.url, Buffer.from(`${lines.join('\r\n')}\r\n\r\n`))
      }
      expect(reached()).toEqual([])
    })
  })
})
