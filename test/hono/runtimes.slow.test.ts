/** The example of an app behind a guard, in workerd and in Node. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { hc } from 'hono/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { App } from '../../examples/hono/app.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { createKey, mint, type TestKey } from '../harness/issuer.ts'
import { freePort, ROOT } from '../harness/process.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { startWorkerd } from '../origin/workerd.ts'

interface Serving {
  readonly port: number
  stop(): Promise<void>
}

type Vars = Readonly<Record<string, string>>

const startInWorkerd = (vars: Vars): Promise<Serving> =>
  startWorkerd({ entry: join(ROOT, 'examples/hono/app.ts'), vars })

async function startInNode(vars: Vars): Promise<Serving> {
  const port = await freePort()
  const file = join(ROOT, 'examples/hono/node.ts')
  const tsx = join(ROOT, 'node_modules/.bin/tsx')
  const env = { ...process.env, ...vars, PORT: String(port) }
  const child: ChildProcess = spawn(tsx, [file], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  const listening = new Promise<void>((resolve, reject) => {
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log += text
      if (log.includes('Listening')) resolve()
    })
    child.once('exit', () => reject(new Error(log)))
  })
  await listening
  return {
    port,
    async stop() {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}

describe.each([
  ['workerd', startInWorkerd],
  ['Node', startInNode],
] as const)('the example of a guarded app in %s', (_, start) => {
  let key: TestKey
  let provider: TestServer
  let redis: TestRedis
  let serving: Serving

  beforeAll(async () => {
    key = await createKey('notes')
    // The app finds the key set in the issuer's metadata.
    provider = await startHttpServer((request, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' })
      const metadata = { issuer: provider.url, jwks_uri: `${provider.url}/keys` }
      const document = request.url === '/keys' ? { keys: [key.publicJwk] } : metadata
      response.end(JSON.stringify(document))
    })
    redis = await startTestRedis()
    serving = await start({
      UPSTASH_REDIS_REST_URL: redis.url,
      UPSTASH_REDIS_REST_TOKEN: redis.token,
      ISSUER: provider.url,
    })
  })

  afterAll(async () => {
    await serving?.stop()
    await redis?.close()
    await provider?.close()
  })

  async function clientOf(roles?: readonly string[]) {
    const claims = { iss: provider.url, aud: 'https://notes.example.com', roles, sub: 'eve' }
    const token = roles && (await mint(key, { claims }))
    return hc<App>(`http://127.0.0.1:${serving.port}`, {
      headers: token === undefined ? {} : { Authorization: `Bearer ${token}` },
    })
  }

  test('the typed client gets responses, with the defaults of the schemas', async () => {
    const client = await clientOf(['writer'])
    const read = await client.notes.$get({ query: {} })
    expect([read.status, await read.json()]).toEqual([200, { notesOf: 'eve', limit: 20 }])
    expect(read.headers.get('ratelimit-policy')).toBe('"standard";q=100;w=60')
    const written = await client.notes.$post({ json: { text: 'buy nails' } })
    expect([written.status, await written.json()]).toEqual([201, { text: 'buy nails' }])
    const policy = '"standard";q=100;w=60, "writes";q=10;w=60'
    expect(written.headers.get('ratelimit-policy')).toBe(policy)
    const about = await (await clientOf()).about.$get()
    expect([about.status, await about.json()]).toEqual([200, { caller: null }])
  })

  test('each guard refuses its kind of request with a problem document', async () => {
    const [anonymous, reader, writer] = [
      await clientOf(),
      await clientOf(['reader']),
      await clientOf(['writer']),
    ]
    const stream = () => new Blob([JSON.stringify({ text: 'x'.repeat(2_000_000) })]).stream()
    const answers: readonly { readonly status: number; readonly headers: Headers }[] = [
      await anonymous.notes.$get({ query: {} }),
      await reader.notes.$post({ json: { text: 'a' } }),
      await writer.notes.$post({ json: { text: '' } }),
      await reader.notes.$get({ query: { limit: '0' } }),
      await writer.notes.$post({ json: { text: 'x'.repeat(2_000_000) } }),
      await writer.notes.$post(
        { json: { text: 'a' } },
        { init: { body: stream(), duplex: 'half' } as RequestInit },
      ),
    ]
    expect(answers.map(({ status }) => status)).toEqual([401, 403, 422, 422, 413, 413])
    for (const { headers } of answers)
      expect(headers.get('content-type')).toBe('application/problem+json')
  })

  test('a request is one round trip, and a token that was revoked is refused', async () => {
    const client = await clientOf(['reader'])
    await client.notes.$get({ query: {} })
    const before = redis.calls()
    expect((await client.notes.$get({ query: {} })).status).toBe(200)
    expect(redis.calls() - before).toBe(1)
    expect((await client.logout.$post()).status).toBe(204)
    expect((await client.notes.$get({ query: {} })).status).toBe(401)
    expect((await (await clientOf(['reader'])).notes.$get({ query: {} })).status).toBe(200)
  })
})
