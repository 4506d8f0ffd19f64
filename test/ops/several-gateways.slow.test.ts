/** Two gateways on two addresses behind a real nginx and a real HAProxy, with one Redis. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, createServer, type IncomingMessage, request, type Server } from 'node:http'
import { connect } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { startProvider, type TestProvider } from '../features/sign-in/provider.ts'
import { createUserAgent } from '../features/sign-in/user-agent.ts'
import { AUDIENCE, createKey, ISSUER, mint, type TestKey } from '../harness/issuer.ts'
import { IS_LONG } from '../harness/long.ts'
import { freePort, isInstalled, ROOT, type Running, run } from '../harness/process.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'

const NODE = join(ROOT, 'node_modules/node/bin/node')
/** The addresses of the gateways. */
const HOSTS = ['127.0.0.1', '127.0.0.2'] as const
/** Not a trusted proxy, as the address of any client. */
const CLIENT = '127.0.0.4'
const CLIENTS = 6
/** Between two requests of a client: a gateway that starts needs the processor too. */
const PAUSE_MS = 5
/** Responses that the clients get before the next step of a restart. */
const RESPONSES = 60
const PROXIES = ['nginx', 'haproxy'] as const
type ProxyName = (typeof PROXIES)[number]

const folder = mkdtempSync(join(tmpdir(), 'portcullis-gateways-'))
let redis: TestRedis
let key: TestKey
let provider: TestProvider
/** The origin of each gateway: its requests show which gateway forwarded them. */
let origins: readonly Server[] = []
let gateways: Running[] = []
let ports: Readonly<Record<ProxyName, number>> & { readonly gateways: readonly number[] }
const proxies: ChildProcess[] = []
const reached: { readonly at: number; readonly incoming: IncomingMessage }[] = []

async function startOrigin(at: number): Promise<Server> {
  const sockets = new WebSocketServer({ noServer: true })
  const server = createServer((incoming, response) => {
    reached.push({ at, incoming })
    incoming.resume()
    if (incoming.url !== '/events') return void response.end(String(at))
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${at}\n\n`)
  })
  server.on('upgrade', (incoming, socket, head) =>
    sockets.handleUpgrade(incoming, socket, head, (opened) => opened.send(String(at))),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

function startGateway(at: number, version: 'old' | 'new'): Promise<Running> {
  const address = origins[at]?.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const issuer = provider.issuer
  const publicUrl = `http://127.0.0.1:${ports.nginx}`
  const environment = {
    HOST: HOSTS[at] ?? '',
    PORT: String(ports.gateways[at]),
    POLICY_VERSION: version,
    REDIS_URL: redis.redisUrl,
    REDIS_TIMEOUT_MS: '5000',
    PUBLIC_URL: publicUrl,
    ORIGIN_URL: `http://127.0.0.1:${port}`,
    ISSUERS: JSON.stringify([
      { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } },
      { issuer, audience: publicUrl, algorithms: ['ES256'] },
    ]),
    ISSUER_CLIENTS: JSON.stringify([
      { issuer, ...provider.client, signIn: { name: 'Example', scope: 'openid profile' } },
    ]),
    TRUSTED_PROXIES: '127.0.0.1',
  }
  return run([NODE, 'test/ops/gateways/process.ts'], environment, 'ready on')
}

/** Replaces texts. Throws if one is not there. */
function adapted(path: string, changes: readonly (readonly [from: string, to: string])[]): string {
  return changes.reduce(
    (content, [from, to]) => {
      if (!content.includes(from)) throw new Error(`${path} does not contain ${from}`)
      return content.replaceAll(from, to)
    },
    readFileSync(join(ROOT, path), 'utf8'),
  )
}

const file = (name: string) => join(folder, name)
const addressOf = (at: number) => `${HOSTS[at]}:${ports.gateways[at]}`

/** Writes the shipped files for these ports, without TLS. Returns the commands. */
function commandOf(name: ProxyName): readonly [string, ...string[]] {
  if (name === 'haproxy') {
    const shipped = adapted('ops/haproxy/portcullis.cfg', [
      [':443 ssl crt /etc/haproxy/api.example.com.pem', `127.0.0.1:${ports.haproxy}`],
      ['10.0.2.1:8080', addressOf(0)],
      ['10.0.2.2:8080', addressOf(1)],
    ])
    writeFileSync(file('haproxy.cfg'), shipped)
    return ['haproxy', '-db', '-f', file('haproxy.cfg')]
  }
  const site = adapted('ops/nginx/portcullis.conf', [
    ['127.0.0.1:8081', addressOf(0)],
    ['127.0.0.1:8082', addressOf(1)],
    ['listen 80;', 'listen 127.0.0.1:1 bind;'],
    ['listen [::]:80;', ''],
    ['listen 443 ssl http2;', `listen 127.0.0.1:${ports.nginx};`],
    ['listen [::]:443 ssl http2;', ''],
    ['ssl_certificate     /etc/letsencrypt/live/api.example.com/fullchain.pem;', ''],
    ['ssl_certificate_key /etc/letsencrypt/live/api.example.com/privkey.pem;', ''],
  ]).replace(/server \{\s+listen 127\.0\.0\.1:1 bind;[^}]+\}/, '')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (part) => `${part}_temp_path ${folder}/${part};`,
  )
  writeFileSync(file('site.conf'), site)
  writeFileSync(
    file('nginx.conf'),
    `user ${userInfo().username}; daemon off; pid ${folder}/pid; error_log stderr;
     events {} http { access_log off; ${temporary.join(' ')} include ${folder}/site.conf; }`,
  )
  return ['nginx', '-e', 'stderr', '-p', folder, '-c', file('nginx.conf')]
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const isOpen = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return isOpen
}

async function startProxy(name: ProxyName): Promise<void> {
  const [program, ...parameters] = commandOf(name)
  const child = spawn(program, parameters, { stdio: 'ignore' })
  proxies.push(child)
  while (!(await listens(ports[name]))) {
    if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}`)
    await sleep(20)
  }
}

describe.runIf(isInstalled('nginx') && isInstalled('haproxy'))('two gateways', () => {
  beforeAll(async () => {
    redis = await startTestRedis()
    key = await createKey('idp')
    ports = {
      nginx: await freePort(),
      haproxy: await freePort(),
      gateways: [await freePort(), await freePort()],
    }
    provider = await startProvider(`http://127.0.0.1:${ports.nginx}`)
    origins = [await startOrigin(0), await startOrigin(1)]
    gateways = await Promise.all([startGateway(0, 'old'), startGateway(1, 'old')])
    await Promise.all(PROXIES.map(startProxy))
  })
  afterAll(async () => {
    for (const proxy of proxies) {
      const ended = once(proxy, 'exit')
      proxy.kill('SIGTERM')
      await ended
    }
    await Promise.all(gateways.map((gateway) => gateway.stop()))
    for (const origin of origins) origin.close().closeAllConnections()
    await provider?.close()
    await redis?.close()
    rmSync(folder, { recursive: true })
  })

  interface Sent {
    readonly method?: string
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: string
    readonly agent?: Agent
    readonly host?: string
  }

  /** Sends a request. Resolves when the headers of the response are here. */
  async function send(port: number | undefined, path: string, sent: Sent = {}) {
    const { body, host = '127.0.0.1', ...options } = sent
    const [response] = await once(
      request({ host, port, path, localAddress: CLIENT, ...options }).end(body),
      'response',
    )
    return response as IncomingMessage
  }
  async function answered(port: number | undefined, path: string, sent?: Sent): Promise<number> {
    const response = await send(port, path, sent)
    await text(response)
    return response.statusCode ?? 0
  }
  const atGateway = (at: number, path: string, sent: Sent = {}) =>
    send(ports.gateways[at], path, { ...sent, host: HOSTS[at] ?? '' })
  async function statusAt(at: number, path: string, sent?: Sent): Promise<number> {
    const response = await atGateway(at, path, sent)
    await text(response)
    return response.statusCode ?? 0
  }
  const bearer = async (sub: string, ...roles: string[]) => ({
    authorization: `Bearer ${await mint(key, { claims: { sub, roles } })}`,
  })
  async function revoke(subject: string): Promise<void> {
    const headers = {
      ...(await bearer('operator', 'operator')),
      'content-type': 'application/json',
    }
    const body = JSON.stringify({ kind: 'subject', value: subject, issuer: ISSUER })
    const sent = { method: 'POST', headers, body }
    expect(await statusAt(0, '/-/admin/revocations', sent)).toBe(201)
  }

  describe.each(PROXIES)('behind %s', (name) => {
    const client = (what: string) => `${what}-${name}`

    // The tests of the other proxy have stopped each gateway. This one may have noticed that, but not the new start.
    beforeAll(async () => {
      const headers = await bearer(client('first'), 'reader')
      const servedBy = async () => {
        const before = reached.length
        for (const _ of HOSTS) await answered(ports[name], '/orders', { headers })
        return new Set(reached.slice(before).map(({ at }) => at)).size
      }
      while ((await servedBy()) < HOSTS.length) await sleep(20)
    })

    test('share a limit exactly', async () => {
      const headers = await bearer(client('limited'), 'reader')
      const before = reached.length
      const one = () => answered(ports[name], '/few', { headers })
      // One by one, the proxy sends them to both in turn.
      const first = [await one(), await one(), await one(), await one()]
      const rest = await Promise.all(Array.from({ length: 46 }, one))
      const statuses = [...first, ...rest]
      expect(statuses.filter((status) => status === 200)).toHaveLength(20)
      expect(statuses.filter((status) => status === 429)).toHaveLength(30)
      const served = reached.slice(before).map(({ at }) => at)
      expect([served.length, new Set(served)]).toEqual([20, new Set([0, 1])])
    })

    test('refuse a revoked caller at the next request', async () => {
      const headers = await bearer(client('revoked'), 'reader')
      expect([
        await statusAt(0, '/orders', { headers }),
        await statusAt(1, '/orders', { headers }),
      ]).toEqual([200, 200])
      await revoke(client('revoked'))
      const before = reached.length
      const all = Array.from({ length: 4 }, () => answered(ports[name], '/orders', { headers }))
      expect(await Promise.all(all)).toEqual([401, 401, 401, 401])
      expect(reached.length).toBe(before)
    })

    test('see the address of the client, which cannot write another one', async () => {
      const headers = { ...(await bearer(client('address'), 'reader')) }
      for (const forged of ['203.0.113.9', '127.0.0.1', '203.0.113.9, 127.0.0.1'])
        for (const sent of [{ headers }, { headers: { ...headers, 'x-forwarded-for': forged } }]) {
          expect(await answered(ports[name], '/orders', sent)).toBe(200)
          expect(reached.at(-1)?.incoming.headers['x-forwarded-for']).toBe(CLIENT)
        }
      // A client that reaches a gateway without the proxy cannot write an address either.
      const direct = { headers: { ...headers, 'x-forwarded-for': '203.0.113.9' } }
      expect(await statusAt(1, '/orders', direct)).toBe(200)
      expect(reached.at(-1)?.incoming.headers['x-forwarded-for']).toBe(CLIENT)
    })

    test('keep a stream at its gateway, and end it when its caller is revoked', async () => {
      const headers = await bearer(client('stream'), 'reader')
      const response = await send(ports[name], '/events', { headers })
      // The stream is cut, so that a client cannot take it for a whole one.
      const ended = once(response, 'error')
      const [first] = await once(response, 'data')
      expect(String(first)).toMatch(/^data: [01]\n\n$/)
      const socket = new WebSocket(`ws://127.0.0.1:${ports[name]}/socket`, { headers })
      const [message] = await once(socket, 'message')
      expect(String(message)).toMatch(/^[01]$/)
      const closed = once(socket, 'close')
      response.resume()
      await revoke(client('stream'))
      const [[error]] = await Promise.all([ended, closed])
      expect(String(error)).toBe('Error: aborted')
    })

    // In each run, behind the first proxy.
    test.runIf(IS_LONG || name === PROXIES[0])(
      'lose no request while one after the other restarts under load',
      async () => {
        const headers = await bearer(client('load'), 'reader')
        const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
        const outcomes: string[] = []
        let isDone = false
        const clients = Array.from({ length: CLIENTS }, async () => {
          while (!isDone) {
            outcomes.push(
              await answered(ports[name], '/orders', { headers, agent }).then(String, String),
            )
            await sleep(PAUSE_MS)
          }
        })
        const moreResponses = async () => {
          const enough = outcomes.length + RESPONSES
          await expect.poll(() => outcomes.length, { interval: 10 }).toBeGreaterThan(enough)
        }
        for (const at of [0, 1]) {
          await moreResponses()
          expect(await gateways[at]?.stop()).toBe(0)
          await moreResponses()
          gateways[at] = await startGateway(at, 'old')
          // As the guide says: the other one stops only after the proxy sends requests to this one again.
          const before = reached.length
          const isBack = () => reached.slice(before).some((one) => one.at === at)
          await expect.poll(isBack, { interval: 10 }).toBe(true)
        }
        await moreResponses()
        isDone = true
        await Promise.all(clients)
        agent.destroy()
        expect(new Set(outcomes)).toEqual(new Set(['200']))
      },
    )
  })

  test('a session that was opened through one gateway is valid at each, and ends at each', async () => {
    const url = `http://127.0.0.1:${ports.nginx}`
    const browser = createUserAgent()
    // Each step of the login goes to the next gateway.
    const visit = await browser.visit(`${url}/page`)
    expect([visit.status, visit.path.at(-1)]).toEqual([200, '/page'])
    const cookie = [...browser.jarOf(url)].map((pair) => pair.join('=')).join('; ')
    const headers = { cookie }
    for (const at of [0, 1]) expect(await statusAt(at, '/page', { headers })).toBe(200)
    const signOut = { method: 'POST', headers: { ...headers, 'sec-fetch-site': 'same-origin' } }
    expect(await statusAt(1, '/oauth/sign-out', signOut)).toBeLessThan(400)
    for (const at of [0, 1]) expect(await statusAt(at, '/page', { headers })).toBe(401)
  })

  test('a policy with more routes: the gateway without it answers 404 or 405, until both name the new one', async () => {
    const headers = await bearer('rollout', 'reader')
    const post = { method: 'POST', headers }
    const policyAt = async (at: number) =>
      (JSON.parse(await text(await atGateway(at, '/-/readyz'))) as { policy?: string }).policy
    const load = async (at: number) => {
      const { child } = gateways[at] ?? {}
      child?.kill('SIGHUP')
      await expect.poll(() => gateways[at]?.output()).toContain('uses the new policy')
    }
    expect(await policyAt(0)).toBe('a'.repeat(64))
    expect(await policyAt(1)).toBe('a'.repeat(64))
    await load(0)
    expect(await policyAt(0)).toBe('b'.repeat(64))
    expect(await policyAt(1)).toBe('a'.repeat(64))

    expect(await statusAt(0, '/reports', { headers })).toBe(200)
    expect(await statusAt(0, '/orders', post)).toBe(200)
    const before = reached.length
    const unknown = await atGateway(1, '/reports', { headers })
    const refused = await atGateway(1, '/orders', post)
    expect([unknown.statusCode, unknown.headers['cache-control']]).toEqual([404, 'no-store'])
    expect([refused.statusCode, refused.headers['cache-control']]).toEqual([405, 'no-store'])
    await Promise.all([text(unknown), text(refused)])
    expect(reached.length).toBe(before)

    await load(1)
    expect(await policyAt(1)).toBe('b'.repeat(64))
    for (const name of PROXIES)
      for (const sent of [{ headers }, { headers }, post, post]) {
        const path = sent === post ? '/orders' : '/reports'
        expect(await answered(ports[name], path, sent)).toBe(200)
      }
  })
})
