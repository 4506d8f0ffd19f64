/** The same probes of a guarded app on each runtime that `docs/runtimes.md` names as tested. */
import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EdgeVM } from '@edge-runtime/vm'
import { type BuildOptions, build } from 'esbuild'
import type { Hono } from 'hono'
import { handle as handleLambda, type LambdaContext } from 'hono/aws-lambda'
import { handle as handleEdge } from 'hono/lambda-edge'
import { handle as handleNetlify } from 'hono/netlify'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Command, runIn } from '../dev/start/checkout.ts'
import { descendantsOf } from '../dev/start/processes.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { createKey, ISSUER, mint, type TestKey } from '../harness/issuer.ts'
import { IS_LONG } from '../harness/long.ts'
import { freePort, ROOT } from '../harness/process.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { cloudFrontEvent, lambdaEvent } from '../hono/events.ts'
import { createApp as createGatewayApp } from './gateway-app.ts'
import { app as guarded } from './guarded-app.ts'

interface Sent {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

interface Answer {
  readonly status: number
  readonly body: string
  readonly headers: Headers
}

type Send = (path: string, sent?: Sent) => Promise<Answer>

interface Started {
  readonly send: Send
  /** The address that the guard must see. */
  readonly address: string
  stop?(): void | Promise<void>
}

let redis: TestRedis
let key: TestKey
let folder: string
let origin: TestServer
/** The requests that reached the origin of the gateways. */
const reached: string[] = []
let env: Record<string, string>

beforeAll(async () => {
  redis = await startTestRedis()
  key = await createKey('idp')
  folder = mkdtempSync(join(tmpdir(), 'portcullis-runtimes-'))
  origin = await startHttpServer((request, response) => {
    reached.push(`${request.method} ${request.url}`)
    // The adapter of Lambda@Edge encodes bodies without a type.
    response.setHeader('Content-Type', 'application/json')
    request.pipe(response)
  })
  env = {
    PUBLIC_URL: 'https://api.test',
    ORIGIN_URL: origin.url,
    ISSUERS: JSON.stringify([
      { issuer: ISSUER, audience: 'https://api.test', jwks: { keys: [key.publicJwk] } },
    ]),
    ISSUER,
    JWKS: JSON.stringify({ keys: [key.publicJwk] }),
    UPSTASH_REDIS_REST_URL: redis.url,
    UPSTASH_REDIS_REST_TOKEN: redis.token,
    REDIS_URL: redis.redisUrl,
  }
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
})

afterAll(async () => {
  vi.unstubAllEnvs()
  await redis?.close()
  await origin?.close()
  rmSync(folder, { recursive: true, force: true })
})

const answerOf = async (response: Response): Promise<Answer> => ({
  status: response.status,
  body: await response.text(),
  headers: response.headers,
})

const SOCKETS = 'over-sockets.ts'

/** What runs on a runtime: an app, the module that contains it, and the one that serves it on Bun and Deno. */
interface Program {
  readonly app: Pick<Hono, 'fetch'> | ReturnType<typeof createGatewayApp>
  readonly module: string
  readonly served: string
}

const GUARDED: Program = { app: guarded, module: 'guarded-app.ts', served: 'over-rest.ts' }
/** Isolates remember refusals, so each runtime gets one of its own. */
const gatewayProgram = (): Program => ({
  app: createGatewayApp(),
  module: 'gateway-app.ts',
  served: 'over-gateway.ts',
})

const OF_NO_PLATFORM: BuildOptions = {
  platform: 'neutral',
  mainFields: ['module', 'main'],
  conditions: ['import'],
}
/** The client of Redis is CommonJS, and imports modules of Node. */
const OF_NODE: BuildOptions = {
  platform: 'node',
  banner: {
    js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)",
  },
}

async function bundle(entry: string, format: 'esm' | 'iife'): Promise<string> {
  const outfile = join(folder, `${entry}.${format}.mjs`)
  await build({
    entryPoints: [join(ROOT, 'test/runtimes', entry)],
    outfile,
    bundle: true,
    format,
    globalName: 'program',
    ...(entry === SOCKETS ? OF_NODE : OF_NO_PLATFORM),
    logLevel: 'error',
  })
  return outfile
}

async function startProcess(
  command: string,
  before: readonly string[],
  entry: string,
): Promise<Started> {
  const file = await bundle(entry, 'esm')
  const child = spawn(join(ROOT, 'node_modules/.bin', command), [...before, file], {
    env: { PATH: process.env.PATH ?? '', HOME: folder, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await new Promise<string>((resolve, reject) => {
    let printed = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed += text
      const [, found] = /port (\d+)/.exec(printed) ?? []
      if (found !== undefined) resolve(found)
    })
    child.once('exit', () => reject(new Error(`${command} ended: ${printed}`)))
  })
  return {
    send: async (path, sent) => answerOf(await fetch(`http://127.0.0.1:${port}${path}`, sent)),
    address: '127.0.0.1',
    stop: () => void child.kill('SIGKILL'),
  }
}

const PLATFORM_ADDRESS = '192.0.2.7'

/** Starts `wrangler pages dev` with the app as a function for all paths. */
async function startPages(): Promise<Started> {
  const project = join(folder, 'pages')
  mkdirSync(join(project, 'functions'), { recursive: true })
  mkdirSync(join(project, 'public'))
  cpSync(await bundle('over-pages.ts', 'esm'), join(project, 'functions/[[path]].js'))
  const variables = Object.entries(env).map(([name, value]) => `${name}='${value}'`)
  writeFileSync(join(project, '.dev.vars'), variables.join('\n'))
  const [port, inspectorPort] = [await freePort(), await freePort()]
  const command: Command = runIn(
    project,
    [
      ...([join(ROOT, 'node_modules/.bin/wrangler'), 'pages', 'dev', 'public'] as const),
      ...['--ip', '127.0.0.1', '--port', String(port), '--inspector-port', String(inspectorPort)],
      ...['--compatibility-date', '2026-11-17'],
    ],
    { HOME: folder, PATH: process.env.PATH ?? '', CI: 'true' },
  )
  await command.printed(/Ready on/)
  return {
    address: PLATFORM_ADDRESS,
    send: async (path, sent = {}) => {
      // Cloudflare overwrites this header; the server on this machine does not.
      const headers = { ...sent.headers, 'CF-Connecting-IP': PLATFORM_ADDRESS }
      return answerOf(await fetch(`http://127.0.0.1:${port}${path}`, { ...sent, headers }))
    },
    async stop() {
      for (const pid of descendantsOf(command.pid)) process.kill(pid, 'SIGTERM')
      command.child.kill('SIGTERM')
      await command.ended
    },
  }
}

const RUNTIMES: Readonly<Record<string, (program: Program) => Promise<Started>>> = {
  Bun: ({ served }) => startProcess('bun', ['run'], served),
  Deno: ({ served }) => startProcess('deno', ['run', '--allow-net', '--allow-env'], served),
  'Bun, Redis by sockets': () => startProcess('bun', ['run'], SOCKETS),
  'Deno, Redis by sockets': () =>
    startProcess(
      'deno',
      ['run', '--allow-net', '--allow-env', '--allow-sys', '--allow-read'],
      SOCKETS,
    ),
  'AWS Lambda': async ({ app }) => ({
    address: PLATFORM_ADDRESS,
    async send(path, sent) {
      const event = lambdaEvent({ path, ...sent })
      const answer: unknown = await handleLambda(app as Hono)(event as never, {} as LambdaContext)
      const { statusCode, body, headers } = answer as {
        statusCode: number
        body: string
        headers: Record<string, string>
      }
      return { status: statusCode, body, headers: new Headers(headers) }
    },
  }),
  'Lambda@Edge': async ({ app }) => ({
    address: PLATFORM_ADDRESS,
    async send(path, sent) {
      const answer = await handleEdge(app as Hono)(cloudFrontEvent({ path, ...sent }) as never)
      const {
        status,
        body = '',
        headers,
      } = answer as {
        status: string
        body?: string
        headers: Record<string, readonly { key: string; value: string }[]>
      }
      const fields = Object.values(headers).flat()
      const pairs = fields.map(({ key: field, value }): [string, string] => [field, value])
      return { status: Number(status), body, headers: new Headers(pairs) }
    },
  }),
  Netlify: async ({ app }) => ({
    address: PLATFORM_ADDRESS,
    send: async (path, sent) =>
      answerOf(
        await handleNetlify(app as Hono)(new Request(`https://api.test${path}`, sent), {
          ip: PLATFORM_ADDRESS,
        }),
      ),
  }),
  ...(IS_LONG && { 'Cloudflare Pages': startPages }),
  'Vercel Edge': async ({ module }) => {
    const code = readFileSync(await bundle(module, 'iife'), 'utf8')
    const variables = { ...env, VERCEL: '1', VERCEL_REGION: 'fra1' }
    const vm = new EdgeVM({
      extend: (context) => Object.assign(context, { process: { env: variables } }),
    })
    vm.evaluate(code)
    return {
      address: PLATFORM_ADDRESS,
      async send(path, sent = {}) {
        const headers = { ...sent.headers, 'X-Real-IP': PLATFORM_ADDRESS }
        const init = JSON.stringify({ ...sent, headers })
        const url = JSON.stringify(`https://api.test${path}`)
        return answerOf(await vm.evaluate(`program.app.fetch(new Request(${url}, ${init}))`))
      },
    }
  },
}

test('the page names each runtime of the test, and these versions', () => {
  const page = readFileSync(join(ROOT, 'docs/runtimes.md'), 'utf8')
  const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  for (const name of Object.keys(RUNTIMES)) expect(page).toContain(`| ${name} `)
  for (const name of ['bun', 'deno'])
    expect(page.toLowerCase()).toContain(`${name} ${devDependencies[name]}`)
})

describe.each(Object.entries(RUNTIMES))('a guarded app on %s', (name, start) => {
  let started: Started

  beforeAll(async () => {
    // Bad tokens of several apps from one address would ban it.
    await redis.direct.flushall()
    started = await start(GUARDED)
  })

  afterAll(() => started?.stop?.())

  test('decides as on the others, and knows the client', async () => {
    const { send } = started
    let tokens = 0
    const bearer = async (roles: readonly string[]) => {
      const claims = { sub: `${name}${tokens++}`, roles, aud: 'https://api.test' }
      return { Authorization: `Bearer ${await mint(key, { claims })}` }
    }
    const forged = { 'X-Forwarded-For': '198.51.100.1', 'CF-Connecting-IP': '198.51.100.2' }
    expect(await send('/open', { headers: forged })).toMatchObject({
      status: 200,
      body: started.address,
    })
    const headers = await bearer(['reader'])
    expect(await send('/notes', { headers })).toMatchObject({ status: 200, body: 'in' })
    expect((await send('/notes')).status).toBe(401)
    expect((await send('/notes', { headers: { Authorization: 'Bearer a.b.c' } })).status).toBe(401)

    const json = { 'Content-Type': 'application/json' }
    const post = async (body: string, roles: readonly string[]) =>
      send('/notes', { method: 'POST', body, headers: { ...json, ...(await bearer(roles)) } })
    expect((await post('{"text":"a"}', ['reader'])).status).toBe(403)
    expect((await post('{"text":1}', ['writer'])).status).toBe(422)
    expect(await post('{"text":"a"}', ['writer'])).toMatchObject({
      status: 200,
      body: '{"text":"a"}',
    })

    const limited = await bearer(['reader'])
    const counted = await send('/few', { headers: limited })
    expect([counted.status, counted.headers.get('ratelimit')]).toEqual([
      200,
      expect.stringMatching(/^"few";r=0;t=\d+$/),
    ])
    const refused = await send('/few', { headers: limited })
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toMatch(/^\d+$/)
    expect(refused.headers.get('ratelimit-policy')).toBe('"few";q=1;w=3600')

    expect((await send('/logout', { method: 'POST', headers })).status).toBe(204)
    expect((await send('/notes', { headers })).status).toBe(401)

    if (name.endsWith('sockets')) return
    redis.setAnswering(false)
    const outage = await send('/notes', { headers: await bearer(['reader']) })
    redis.setAnswering(true)
    expect(outage.status).toBe(503)
    expect(JSON.parse(outage.body)).toMatchObject({ code: 'dependency_unavailable' })
  })
})

const ONLY_GUARD = /sockets$|^Cloudflare Pages$/

describe.each(Object.entries(RUNTIMES).filter(([name]) => !ONLY_GUARD.test(name)))(
  'a gateway with a runtime of its own on %s',
  (name, start) => {
    let started: Started

    beforeAll(async () => {
      started = await start(gatewayProgram())
    })

    afterAll(() => started?.stop?.())

    test('forwards what it admits, and nothing else', async () => {
      const { send } = started
      const read = async (path: string, sub: string, roles: readonly string[] = ['reader']) => {
        const token = await mint(key, {
          claims: { sub: `${name} ${sub}`, roles, aud: 'https://api.test' },
        })
        return send(path, { headers: { Authorization: `Bearer ${token}` } })
      }
      await redis.direct.flushall()
      reached.length = 0
      expect((await read('/notes', 'alice')).status).toBe(200)
      expect((await send('/notes')).status).toBe(401)
      expect((await read('/notes', 'bob', [])).status).toBe(403)
      expect((await read('/other', 'alice')).status).toBe(404)
      expect((await read('/few', 'alice')).status).toBe(200)
      expect((await read('/few', 'alice')).status).toBe(429)
      const forged = (address: string) => ({
        headers: { 'X-Forwarded-For': address, 'CF-Connecting-IP': address },
      })
      expect((await send('/open', forged('198.51.100.1'))).status).toBe(200)
      expect((await send('/open', forged('198.51.100.2'))).status).toBe(429)

      const claims = { sub: `${name} carol`, roles: ['writer'], aud: 'https://api.test' }
      const headers = {
        Authorization: `Bearer ${await mint(key, { claims })}`,
        'Content-Type': 'application/json',
      }
      const body = '{"text":"a"}'
      expect((await send('/notes', { method: 'POST', headers, body: '{"text":1}' })).status).toBe(
        422,
      )
      expect(await send('/notes', { method: 'POST', headers, body })).toMatchObject({
        status: 200,
        body,
      })

      redis.setAnswering(false)
      const outage = await read('/notes', 'dave')
      redis.setAnswering(true)
      expect(outage.status).toBe(503)
      expect(reached).toEqual(['GET /notes', 'GET /few', 'GET /open', 'POST /notes'])
    })
  },
)
