/** The site of nginx in front of two gateways, with a real nginx, TLS, and gateways that restart under load. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, type RequestOptions, request } from 'node:https'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { AUDIENCE, createKey, ISSUER, mint, type TestKey } from '../harness/issuer.ts'
import { testInLong } from '../harness/long.ts'
import { freePort, isInstalled, ROOT, type Running, run } from '../harness/process.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'

const NODE = join(ROOT, 'node_modules/node/bin/node')
/** Not a trusted proxy, as the address of any client. */
const CLIENT = '127.0.0.2'
const CLIENTS = 8
/** Responses that the clients get before the next step of a restart. */
const RESPONSES = 200

const folder = mkdtempSync(join(tmpdir(), 'portcullis-nginx-'))
const reached: IncomingMessage[] = []
let redis: TestRedis
let origin: TestServer
let gateways: Running[] = []
let ports: { readonly http: number; readonly https: number; readonly gateways: readonly number[] }
let nginx: ReturnType<typeof spawn>
let environment: Record<string, string>
let key: TestKey
let authorization: string
/** Ends the responses of the origin to `GET /orders?hold`. */
let release = () => {}

/** Returns the site with the ports and files of this test. Throws if the site does not name one. */
function siteHere(): string {
  let site = readFileSync(join(ROOT, 'ops/nginx/portcullis.conf'), 'utf8')
  const [first, second] = ports.gateways
  for (const [from, to] of [
    ['127.0.0.1:8081', `127.0.0.1:${first}`],
    ['127.0.0.1:8082', `127.0.0.1:${second}`],
    ['listen 80;', `listen 127.0.0.1:${ports.http};`],
    ['listen [::]:80;', ''],
    ['listen 443 ssl', `listen 127.0.0.1:${ports.https} ssl`],
    ['listen [::]:443 ssl http2;', ''],
    ['/etc/letsencrypt/live/api.example.com/fullchain.pem', join(folder, 'cert.pem')],
    ['/etc/letsencrypt/live/api.example.com/privkey.pem', join(folder, 'key.pem')],
  ] as const) {
    if (!site.includes(from)) throw new Error(`the site does not contain ${from}`)
    site = site.replace(from, to)
  }
  return site
}

async function startGateway(port: number | undefined): Promise<Running> {
  const command = [NODE, 'test/runtimes/node/process.ts'] as const
  return run(command, { ...environment, PORT: String(port) }, 'ready on')
}

describe.runIf(isInstalled('nginx'))('nginx in front of two gateways', () => {
  beforeAll(async () => {
    redis = await startTestRedis()
    origin = await startHttpServer((incoming, response) => {
      reached.push(incoming)
      incoming.resume()
      if (!incoming.url?.endsWith('?hold')) return void response.end('[]')
      response.write('[')
      release = () => response.end(']')
    })
    key = await createKey('idp')
    authorization = `Bearer ${await mint(key)}`
    ports = {
      http: await freePort(),
      https: await freePort(),
      gateways: [await freePort(), await freePort()],
    }
    const jwks = { keys: [key.publicJwk] }
    environment = {
      REDIS_URL: redis.redisUrl,
      REDIS_TIMEOUT_MS: '5000',
      PUBLIC_URL: 'https://api.example.com',
      ORIGIN_URL: origin.url,
      ISSUERS: JSON.stringify([{ issuer: ISSUER, audience: AUDIENCE, jwks }]),
      TRUSTED_PROXIES: '127.0.0.1',
      PROXY_TARGET_HEADERS: 'x-forwarded-proto,x-forwarded-host,x-forwarded-port',
    }
    gateways = await Promise.all(ports.gateways.map(startGateway))

    const options =
      'req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -subj /CN=api.example.com'
    execFileSync('openssl', options.split(' '), { cwd: folder, stdio: 'pipe' })
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${folder}/${name};`,
    )
    writeFileSync(join(folder, 'site.conf'), siteHere())
    writeFileSync(
      join(folder, 'nginx.conf'),
      `user ${userInfo().username}; daemon off; pid ${folder}/pid; error_log stderr notice;
       events {} http { access_log off; ${temporary.join(' ')} include ${folder}/site.conf; }`,
    )
    nginx = spawn('nginx', ['-e', 'stderr', '-p', folder, '-c', join(folder, 'nginx.conf')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const started = new Promise<void>((resolve, reject) => {
      let output = ''
      nginx.stderr?.on('data', (data) => {
        output += data
        if (output.includes('start worker process ')) resolve()
      })
      nginx.once('exit', () => reject(new Error(output)))
    })
    await started
  })

  afterAll(async () => {
    const ended = nginx && once(nginx, 'exit')
    nginx?.kill('SIGTERM')
    await ended
    await Promise.all(gateways.map((gateway) => gateway.stop()))
    await origin?.close()
    await redis?.close()
    rmSync(folder, { recursive: true })
  })

  /** Sends a request to nginx. Resolves with its response when the headers are here. */
  async function send(
    path: string,
    { body, ...options }: RequestOptions & { body?: string | Buffer } = {},
  ): Promise<IncomingMessage> {
    const [response] = await once(
      request({
        host: '127.0.0.1',
        port: ports.https,
        path,
        localAddress: CLIENT,
        rejectUnauthorized: false,
        ...options,
      }).end(body),
      'response',
    )
    return response
  }

  test('redirects HTTP to HTTPS', async () => {
    const response = await fetch(`http://127.0.0.1:${ports.http}/orders?page=2`, {
      headers: { host: 'api.example.com' },
      redirect: 'manual',
    })
    expect([
      response.status,
      response.headers.get('location')?.replace(/^https:\/\/[^/]+/, ''),
    ]).toEqual([308, '/orders?page=2'])
  })

  test('lets a refusal and an admission through', async () => {
    const before = reached.length
    const refused = await send('/orders')
    expect(refused.statusCode).toBe(401)
    expect(refused.headers['content-type']).toBe('application/problem+json')
    expect(refused.headers['www-authenticate']).toContain('Bearer')
    expect(reached.length).toBe(before)
    const admitted = await send('/orders', { headers: { authorization } })
    expect([admitted.statusCode, await text(admitted)]).toEqual([200, '[]'])
    expect(reached.length).toBe(before + 1)
  })

  test('passes on the address of the client, and a client cannot write another one', async () => {
    for (const forged of [undefined, '203.0.113.9', '127.0.0.1', '203.0.113.9, 127.0.0.1']) {
      const headers = { authorization, ...(forged !== undefined && { 'x-forwarded-for': forged }) }
      const response = await send('/orders', { headers })
      expect(response.statusCode).toBe(200)
      expect(reached.at(-1)?.headers['x-forwarded-for']).toBe(CLIENT)
    }
  })

  test('reports the scheme, host and port, and a client cannot write others', async () => {
    const forged = {
      'X-Forwarded-Proto': 'http',
      'X-Forwarded-Host': 'evil.test',
      'X-Forwarded-Port': '1',
      Forwarded: 'for=127.0.0.1;proto=http;host=evil.test',
    }
    const headers = { authorization, host: 'api.example.com', ...forged }
    expect((await send('/orders', { headers })).statusCode).toBe(200)
    expect(reached.at(-1)?.headers).toMatchObject({
      'x-forwarded-proto': 'https',
      'x-forwarded-host': `api.example.com:${ports.https}`,
      'x-forwarded-port': String(ports.https),
    })
  })

  test('leaves the limit of bodies to the policy', async () => {
    const token = await mint(key, { claims: { roles: ['writer'] } })
    const headers = { authorization: `Bearer ${token}` }
    const post = { method: 'POST', headers }
    expect((await send('/orders', { ...post, body: Buffer.alloc(1_900_000) })).statusCode).toBe(200)
    const refused = await send('/orders', { ...post, body: Buffer.alloc(2_100_000) })
    expect([refused.statusCode, refused.headers['content-type']]).toEqual([
      413,
      'application/problem+json',
    ])
  })

  test('passes on the first part of a response before the rest exists', async () => {
    const response = await send('/orders?hold', { headers: { authorization } })
    const [part] = await once(response, 'data')
    expect(String(part)).toBe('[')
    release()
    expect(await text(response)).toBe(']')
  })

  testInLong('fails no request while one gateway after the other restarts under load', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
    /** Statuses, or errors of connections. */
    const outcomes: string[] = []
    let isDone = false
    const clients = Array.from({ length: CLIENTS }, async () => {
      while (!isDone) {
        const outcome = await send('/orders', { agent, headers: { authorization } }).then(
          async (response) => `${response.statusCode} ${await text(response)}`,
          String,
        )
        outcomes.push(outcome)
      }
    })
    const moreResponses = async () => {
      const enough = outcomes.length + RESPONSES
      await expect.poll(() => outcomes.length).toBeGreaterThan(enough)
    }
    for (const [index, port] of ports.gateways.entries()) {
      await moreResponses()
      expect(await gateways[index]?.stop()).toBe(0)
      await moreResponses()
      gateways[index] = await startGateway(port)
    }
    await moreResponses()
    isDone = true
    await Promise.all(clients)
    agent.destroy()
    expect(new Set(outcomes)).toEqual(new Set(['200 []']))
  })
})
