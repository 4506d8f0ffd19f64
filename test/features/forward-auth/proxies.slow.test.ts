/** Real proxies with the shipped files: each sends authorization requests, and forwards what is allowed. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import { connect } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SESSION_COOKIE } from '../../../src/features/sign-in/session.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { freePort, isInstalled, ROOT } from '../../harness/process.ts'
import { type Listener, startListener } from './listener.ts'

/** Proxies connect from here, and clients from another address, which is not trusted. */
const TRUSTED = '127.0.0.1'
const CLIENT = '127.0.0.4'
const HOST = 'api.example.com'
const STARTS_WITHIN_MS = 60_000

const folder = mkdtempSync(join(tmpdir(), 'portcullis-forward-auth-'))
const file = (name: string) => join(folder, name)
const shipped = (name: string) => readFileSync(join(ROOT, 'ops/forward-auth', name), 'utf8')

/** Replaces texts. Throws if one is not there. */
function adapted(content: string, changes: readonly (readonly [from: string, to: string])[]) {
  return changes.reduce((changed, [from, to]) => {
    if (!changed.includes(from)) throw new Error(`the file does not contain ${from}`)
    return changed.replaceAll(from, to)
  }, content)
}

type Addresses = Pick<Listener, 'listenerUrl' | 'url' | 'originUrl'>

/** The addresses of the shipped files, and those of this test. */
const ADDRESSES = (listener: Addresses) =>
  [
    ['127.0.0.1:8788', new URL(listener.listenerUrl).host],
    ['127.0.0.1:8787', new URL(listener.url).host],
    ['127.0.0.1:9000', new URL(listener.originUrl).host],
  ] as const

interface Proxy {
  readonly program: string
  readonly command: (listener: Addresses, port: number) => readonly string[]
}

const PROXIES: Readonly<Record<string, Proxy>> = {
  nginx: {
    program: 'nginx',
    command(listener, port) {
      const site = adapted(shipped('nginx.conf'), [
        ...ADDRESSES(listener),
        ['listen 80;', `listen ${port};`],
      ])
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (name) => `${name}_temp_path ${folder}/${name};`,
      )
      writeFileSync(file('site.conf'), site)
      writeFileSync(
        file('nginx.conf'),
        `user ${userInfo().username}; daemon off; pid ${folder}/nginx.pid; error_log stderr;
         events {} http { access_log off; ${temporary.join(' ')} include ${folder}/site.conf; }`,
      )
      return ['nginx', '-e', 'stderr', '-p', folder, '-c', file('nginx.conf')]
    },
  },
  caddy: {
    program: 'caddy',
    command(listener, port) {
      const site = adapted(shipped('Caddyfile'), [
        ...ADDRESSES(listener),
        ['http://api.example.com {', `http://api.example.com:${port} {`],
      ])
      writeFileSync(file('Caddyfile'), `{\n\tadmin off\n}\n${site}`)
      return ['caddy', 'run', '--config', file('Caddyfile'), '--adapter', 'caddyfile']
    },
  },
  haproxy: {
    program: 'haproxy',
    command(listener, port) {
      copyFileSync(join(ROOT, 'ops/forward-auth/portcullis.lua'), file('portcullis.lua'))
      const configuration = adapted(shipped('haproxy.cfg'), [
        ...ADDRESSES(listener),
        ['/etc/haproxy/portcullis.lua', file('portcullis.lua')],
        ['bind :80', `bind 127.0.0.1:${port}`],
      ])
      writeFileSync(file('haproxy.cfg'), configuration)
      return ['haproxy', '-db', '-f', file('haproxy.cfg')]
    },
  },
  traefik: {
    program: 'traefik',
    command(listener, port) {
      writeFileSync(
        file('traefik-dynamic.yml'),
        adapted(shipped('traefik-dynamic.yml'), ADDRESSES(listener)),
      )
      const options = [
        `--entryPoints.web.address=127.0.0.1:${port}`,
        `--providers.file.filename=${file('traefik-dynamic.yml')}`,
        '--global.checkNewVersion=false',
      ]
      return ['traefik', ...options]
    },
  },
  envoy: {
    program: 'envoy',
    command(listener, port) {
      const changes = ADDRESSES(listener).flatMap(([from, to]) => {
        const [, before = ''] = from.split(':')
        return [[`port_value: ${before} `, `port_value: ${to.split(':')[1]} `] as const]
      })
      const configuration = adapted(shipped('envoy.yaml'), [
        ...changes,
        ['address: 0.0.0.0, port_value: 80 ', `address: 127.0.0.1, port_value: ${port} `],
      ])
      writeFileSync(file('envoy.yaml'), configuration)
      const options = ['--concurrency', '1', '--log-level', 'error', '--disable-hot-restart']
      return ['envoy', '-c', file('envoy.yaml'), ...options]
    },
  },
}

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Starts a proxy in front of these addresses. */
async function startProxy(proxy: Proxy, addresses: Addresses) {
  const port = await freePort()
  const [program = '', ...parameters] = proxy.command(addresses, port)
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  const running = spawn(program, parameters, { stdio: ['ignore', 'ignore', 'inherit'], env })
  await forwards(port, running)
  return {
    port,
    async stop() {
      if (running.exitCode !== null) return
      const ended = once(running, 'exit')
      running.kill('SIGTERM')
      await ended
    },
  }
}

/** Waits for a path of the gateway itself: Traefik listens before it has its routers. */
async function forwards(port: number, process: ChildProcess): Promise<void> {
  const until = Date.now() + STARTS_WITHIN_MS
  while (Date.now() < until) {
    if (process.exitCode !== null) throw new Error(`the proxy ended with ${process.exitCode}`)
    const options = {
      host: TRUSTED,
      port,
      path: '/-/healthz',
      headers: { Host: HOST },
      agent: false,
    }
    const status = await new Promise((resolve) => {
      send(options, (response) => resolve(response.resume().statusCode))
        .once('error', resolve)
        .end()
    })
    if (status === 200) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('the proxy does not forward')
}

describe.each(Object.entries(PROXIES))('%s with the shipped file', (_, proxy) => {
  describe.runIf(isInstalled(proxy.program))('is installed', () => {
    let listener: Listener
    let port: number
    let running: Awaited<ReturnType<typeof startProxy>>
    let authorization: string

    beforeAll(async () => {
      listener = await startListener({ withoutBody: ['POST /events'] }, TRUSTED)
      authorization = await listener.bearer({ claims: { sub: 'alice' } })
      running = await startProxy(proxy, listener)
      port = running.port
    })
    afterAll(async () => {
      await running?.stop()
      await listener?.close()
    })

    async function fetchThrough(
      path: string,
      headers: Readonly<Record<string, string>> = {},
      method = 'GET',
    ) {
      const request = send({
        host: TRUSTED,
        port,
        path,
        method,
        headers: { Host: HOST, ...headers },
        localAddress: CLIENT,
        agent: false,
      })
      request.end(method === 'POST' ? '{"item":"book"}' : undefined)
      const [response] = (await once(request, 'response')) as [IncomingMessage]
      return { status: response.statusCode, headers: response.headers, body: await text(response) }
    }

    const identityOf = (name: string) => listener.reached.at(-1)?.headers[name] ?? ''

    test('a permitted request reaches the origin once, with the verified identity, for one call of Redis', async () => {
      // Loads the script.
      await fetchThrough('/orders', { Authorization: authorization })
      const before = { calls: listener.redis.decisions(), reached: listener.reached.length }
      const { status, body } = await fetchThrough('/orders?a=%2e%2e', {
        Authorization: authorization,
        'X-Auth-Subject': 'admin',
        'X-Auth-Tenant': 'other',
        'X-Auth-Assertion': 'forged',
      })
      expect([status, body]).toEqual([200, '[]'])
      expect(listener.reached.length - before.reached).toBe(1)
      expect(listener.redis.decisions() - before.calls).toBe(1)
      expect(listener.reached.at(-1)?.url).toBe('/orders?a=%2e%2e')
      expect(identityOf('x-auth-subject')).toBe('alice')
      expect(identityOf('x-auth-tenant')).toBe('')
      expect(identityOf('x-auth-assertion')).toMatch(/^eyJ/)
      expect(identityOf('authorization')).toBe('')
    })

    test('an anonymous request reaches the origin without an identity', async () => {
      const { status } = await fetchThrough('/public/ping', { 'X-Auth-Subject': 'admin' })
      expect(status).toBe(200)
      expect(identityOf('x-auth-subject')).toBe('')
    })

    test('a body reaches the origin if the policy decides without it', async () => {
      const writer = await listener.bearer({ claims: { roles: ['writer'] } })
      const headers = { Authorization: writer, 'Content-Type': 'application/json' }
      expect((await fetchThrough('/events', headers, 'POST')).status).toBe(200)
      expect((await fetchThrough('/orders', headers, 'POST')).status).toBe(403)
    })

    test.each([
      ['no token', '/orders', {}, 401],
      ['no permission', '/admin/users', { Authorization: 'valid' }, 403],
      ['an unknown route', '/customers', { Authorization: 'valid' }, 403],
      ['an ambiguous path', '/public/..%2fadmin/users', { Authorization: 'valid' }, 400],
    ])('%s is refused, and reaches no origin', async (_reason, path, headers, expected) => {
      const before = listener.reached.length
      const given = 'Authorization' in headers ? { Authorization: authorization } : {}
      const { status, headers: received } = await fetchThrough(path, given)
      expect(status).toBe(expected)
      const challenge = received['www-authenticate'] ?? ''
      if (expected === 401 || path === '/admin/users')
        expect(challenge).toContain('resource_metadata=')
      expect(challenge.split('Bearer realm=').length).toBeLessThanOrEqual(2)
      expect(listener.reached.length).toBe(before)
    })

    test('a page without a session leads to the sign-in at the host of the client', async () => {
      const before = listener.reached.length
      const { status, headers } = await fetchThrough('/pages/one?a=1', {
        Accept: 'text/html',
        'Sec-Fetch-Mode': 'navigate',
        'Sec-Fetch-Dest': 'document',
      })
      expect(status).toBe(302)
      const { host, pathname, searchParams } = new URL(headers.location ?? '', `http://${HOST}`)
      // nginx adds the port of the test, which it listens on.
      expect(host.replace(`:${port}`, '')).toBe(HOST)
      expect([pathname, searchParams.get('return_to')]).toEqual([
        '/oauth/sign-in',
        '/pages/one?a=1',
      ])
      expect(listener.reached.length).toBe(before)
    })

    test.each([
      '//admin/users',
      '/\\admin/users',
      '/public/../admin/users',
      '/public/%2e%2e/admin/users',
      '/public/..;/admin/users',
      '/public/%252e%252e/admin/users',
      '/admin%2fusers',
      '/%61dmin/users',
      '/admin/users;/x',
      '/admin/users%00',
      '/oauth/../admin/users',
      '/-/%2e%2e/admin/users',
    ])('%s reaches no origin without a token', async (path) => {
      const before = listener.reached.length
      const { status } = await fetchThrough(path)
      expect([400, 401, 403, 404]).toContain(status)
      expect(listener.reached.length).toBe(before)
    })

    test.each([
      ['X-Original-URL', 'http://api.example.com/public/ping'],
      ['X-Original-Method', 'GET'],
      ['X-Forwarded-Uri', '/public/ping'],
      ['X-Forwarded-Method', 'GET'],
      ['X-Forwarded-Host', 'elsewhere.example.com'],
    ])('%s of a client decides nothing', async (name, value) => {
      const before = listener.reached.length
      const lies = {
        'X-Forwarded-Method': 'GET',
        'X-Original-URL': 'http://api.example.com/public/ping',
        [name]: value,
      }
      expect([400, 401, 403, 404]).toContain((await fetchThrough('/orders', lies)).status)
      expect(listener.reached.length).toBe(before)
    })

    /** Sends bytes on a connection of their own, and returns the response. */
    async function sendRaw(head: readonly string[]): Promise<string> {
      const socket = connect({ port, host: TRUSTED, localAddress: CLIENT })
      socket.on('error', () => {})
      socket.write([...head, 'Connection: close', '', ''].join('\r\n'))
      let received = ''
      try {
        for await (const chunk of socket) received += String(chunk)
      } catch {
        // The proxy has ended the connection.
      }
      return received
    }

    test.each([
      ['no path', ['OPTIONS * HTTP/1.1', `Host: ${HOST}`]],
      ['a tunnel', [`CONNECT ${HOST}:80 HTTP/1.1`, `Host: ${HOST}:80`]],
      ['an absolute target without a path', [`GET http://${HOST} HTTP/1.1`, `Host: ${HOST}`]],
      [
        'headers that fill the buffers',
        [
          'GET /admin/users HTTP/1.1',
          `Host: ${'a'.repeat(2_000)}.example.com`,
          ...Array.from({ length: 15 }, (_each, at) => `X-Fill-${at}: ${'x'.repeat(4_000)}`),
        ],
      ],
      [
        'many headers',
        ['GET /admin/users HTTP/1.1', `Host: ${HOST}`, ...Array(90).fill('X-Auth-Roles: admin')],
      ],
    ])('a request with %s does not get past the decision', async (_reason, head) => {
      const before = listener.reached.length
      const response = await sendRaw([...head, 'X-Auth-Subject: admin', 'X-Auth-Roles: admin'])
      expect(response).not.toContain('[]')
      expect(listener.reached.length).toBe(before)
    })

    test.each([
      'X_Auth_Roles',
      'X.Auth.Roles',
      'X-HTTP-Method-Override',
      'X_HTTP_Method_Override',
      'X_Forwarded_For',
      'X.Forwarded.Proto',
      'X.Original.URL',
      'X-Original-URL',
      'X-Rewrite-URL',
      'Cookie',
      'DPoP',
    ])('%s of a client never reaches the origin', async (name) => {
      const before = listener.reached.length
      await fetchThrough('/public/ping', { [name]: 'admin' })
      const received = listener.reached.slice(before).map(({ rawHeaders }) => rawHeaders.join('\n'))
      expect(received.join('\n')).not.toMatch(/admin/)
    })

    test('a client cannot have the headers of the gateway removed', async () => {
      const before = listener.reached.length
      const headers = {
        Authorization: authorization,
        Connection: 'close, X-Auth-Subject, X-Auth-Assertion',
      }
      await fetchThrough('/orders', headers)
      for (const { headers: received } of listener.reached.slice(before)) {
        expect(received['x-auth-subject']).toBe('alice')
        expect(received['x-auth-assertion']).toMatch(/^eyJ/)
      }
    })

    test('an exhausted limit is 429 with the time to wait, counted by the address of the client', async () => {
      const answers = []
      for (let i = 0; i < 3; i++)
        answers.push(await fetchThrough('/few', { 'X-Forwarded-For': `192.0.2.${i}` }))
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
      expect(Number(answers[2]?.headers['retry-after'])).toBeGreaterThan(0)
    })

    test('the decision endpoint and its listener are not open to clients', async () => {
      const before = listener.reached.length
      expect((await fetchThrough('/-/decide', { Authorization: authorization })).status).toBe(404)
      expect(listener.reached.length).toBe(before)
    })

    test('the paths of the gateway itself are its own', async () => {
      expect((await fetchThrough('/-/healthz')).status).toBe(200)
      expect((await fetchThrough('/.well-known/jwks.json')).status).toBe(200)
    })

    test('an outage of Redis is 503, and reaches no origin', async () => {
      const before = listener.reached.length
      listener.redis.setAnswering(false)
      const { status } = await fetchThrough('/orders', { Authorization: authorization })
      expect(status).toBe(503)
      expect(listener.reached.length).toBe(before)
    })
  })
})

/** For the key of RFC 6455 section 1.3. */
const ACCEPTED = 'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo='

const RENEWED = `${SESSION_COOKIE}=renewed; Path=/; HttpOnly; Secure`

/** A server in the place of the gateway, which allows everything and renews a session. */
function allowing(response: ServerResponse): void {
  response.writeHead(200, {
    'X-Portcullis-Status': '200',
    'X-Auth-Subject': 'alice',
    'X-Auth-Tenant': '',
    'Set-Cookie': RENEWED,
  })
  response.end()
}

describe.each(Object.entries(PROXIES))('%s with the shipped file', (_, proxy) => {
  describe.runIf(isInstalled(proxy.program))('passes on', () => {
    let running: Awaited<ReturnType<typeof startProxy>>
    let decisions: TestServer
    let origin: TestServer
    const opened: IncomingMessage[] = []
    let reached = 0
    const sockets: Duplex[] = []

    beforeAll(async () => {
      decisions = await startHttpServer((_request, response) => allowing(response))
      origin = await startHttpServer(
        (_request, response) => {
          reached += 1
          response.writeHead(200, { 'Set-Cookie': 'theme=dark' }).end('[]')
        },
        (incoming, socket) => {
          opened.push(incoming)
          sockets.push(socket)
          const fields = ['Upgrade: websocket', 'Connection: Upgrade', ACCEPTED, '', '']
          socket.write(['HTTP/1.1 101 Switching Protocols', ...fields].join('\r\n'))
          socket.on('data', (data) => socket.end(data))
        },
      )
      const addresses = { listenerUrl: decisions.url, url: decisions.url, originUrl: origin.url }
      running = await startProxy(proxy, addresses)
    })
    afterAll(async () => {
      for (const socket of sockets) socket.destroy()
      await running?.stop()
      await origin?.close()
      await decisions?.close()
    })

    async function load() {
      const request = send({
        host: TRUSTED,
        port: running.port,
        path: '/',
        headers: { Host: HOST },
        agent: false,
      })
      const [response] = (await once(request.end(), 'response')) as [IncomingMessage]
      return response.resume()
    }

    test('the cookie of a renewed session, beside the cookies of the API', async () => {
      const response = await load()
      expect(response.headers['set-cookie']?.sort()).toEqual([RENEWED, 'theme=dark'])
    })

    test('a WebSocket, with the verified identity', async () => {
      const socket = connect(running.port, TRUSTED)
      socket.write(
        [
          'GET /socket HTTP/1.1',
          `Host: ${HOST}`,
          'Connection: Upgrade',
          'Upgrade: websocket',
          'Sec-WebSocket-Version: 13',
          'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
          'X-Auth-Subject: admin',
          '',
          '',
        ].join('\r\n'),
      )
      socket.setTimeout(60_000, () => socket.destroy())
      let received = ''
      for await (const chunk of socket) {
        if (received === '') socket.write('ping')
        received += String(chunk)
        if (received.endsWith('ping')) break
      }
      socket.destroy()
      expect(received).toMatch(/^HTTP\/1\.1 101 /)
      expect(opened.at(-1)?.headers['x-auth-subject']).toBe('alice')
    })

    // The last one: it ends the gateway.
    test('nothing while the gateway cannot be reached', async () => {
      const before = reached
      expect((await load()).statusCode).toBe(200)
      expect(reached).toBe(before + 1)
      await decisions.close()
      for (let i = 0; i < 3; i++) expect((await load()).statusCode).toBeGreaterThanOrEqual(500)
      expect(reached).toBe(before + 1)
    })
  })
})
