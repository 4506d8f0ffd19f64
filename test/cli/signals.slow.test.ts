/** `portcullis signals` with a transmitter over HTTP, and a gateway that receives its verification event. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { serve } from '../../src/runtimes/node/index.ts'
import { signalPolicy } from '../features/signals/policy.ts'
import { EVENT_AUDIENCE, pushEvent, SSF, signEvent } from '../features/signals/transmitter.ts'
import { startHttpServer } from '../harness/http-server.ts'
import { createKey } from '../harness/issuer.ts'
import { redisVars, startTestRedis } from '../harness/redis.ts'
import { runHere } from './command-here.ts'
import { runCli } from './command-line.ts'

interface Stream {
  readonly stream_id: string
  readonly delivery: {
    readonly method: string
    readonly endpoint_url?: string
    readonly authorization_header?: string
  }
  readonly events_requested: readonly string[]
}

/** Whether streams name their audience. */
let hasAudience = true

/** Demands `Bearer t0ken`, and has at most one stream, as most transmitters. */
async function startTransmitter() {
  const key = await createKey('transmitter')
  const streams: Stream[] = []
  const calls: string[] = []
  /** Statuses of pushed verification events. */
  const pushed: number[] = []
  const server = await startHttpServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', server.url)
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const body = text === '' ? {} : JSON.parse(text)
    const answer = (status: number, value?: object) => {
      response.writeHead(status, { 'Content-Type': 'application/json' })
      response.end(value && JSON.stringify(value))
    }
    if (pathname === '/.well-known/ssf-configuration')
      return answer(200, {
        issuer: server.url,
        jwks_uri: `${server.url}/jwks`,
        configuration_endpoint: `${server.url}/streams`,
        status_endpoint: `${server.url}/status`,
        verification_endpoint: `${server.url}/verify`,
      })
    if (pathname === '/other/.well-known/ssf-configuration') return answer(404)
    if (pathname === '/jwks') return answer(200, { keys: [key.publicJwk] })
    calls.push(`${request.method} ${pathname}`)
    if (request.headers.authorization !== 'Bearer t0ken') return answer(401, {})
    const described = (stream: Stream) => ({
      ...stream,
      iss: server.url,
      ...(hasAudience && { aud: EVENT_AUDIENCE }),
      events_delivered: stream.events_requested.slice(0, 2),
    })
    if (pathname === '/status') return answer(200, { status: 'enabled' })
    if (pathname === '/verify') {
      answer(204)
      const [stream] = streams
      const { method, endpoint_url: url = '', authorization_header } = stream?.delivery ?? {}
      if (method !== 'urn:ietf:rfc:8935') return
      const about = { format: 'opaque', id: body.stream_id }
      const claims = { iss: server.url }
      const event = await signEvent(
        key,
        `${SSF}verification`,
        about,
        { claims },
        { state: body.state },
      )
      const sent = await pushEvent(new URL(url).origin, event, {
        authorization: authorization_header,
      })
      return void pushed.push(sent.status)
    }
    if (request.method === 'DELETE') {
      streams.splice(0)
      return answer(204)
    }
    if (request.method === 'POST') {
      if (streams.length > 0) return answer(409, {})
      const delivery =
        body.delivery.method === 'urn:ietf:rfc:8936'
          ? { ...body.delivery, endpoint_url: `${server.url}/poll?stream_id=s1` }
          : body.delivery
      streams.push({ ...body, delivery, stream_id: 's1' })
    }
    const all = streams.map(described)
    return answer(
      200,
      searchParams.has('stream_id') || request.method === 'POST' ? (all[0] ?? {}) : all,
    )
  })
  return { url: server.url, streams, calls, pushed, close: () => server.close() }
}

let transmitter: Awaited<ReturnType<typeof startTransmitter>>
beforeAll(async () => {
  transmitter = await startTransmitter()
})
afterAll(() => transmitter?.close())
beforeEach(() => {
  transmitter.streams.length = 0
  transmitter.calls.length = 0
  transmitter.pushed.length = 0
})

const secrets = (accessToken = 't0ken', more: object = {}) =>
  JSON.stringify([{ issuer: transmitter.url, accessToken, ...more }])
const run = (args: readonly string[], env: Readonly<Record<string, string>>) =>
  runHere(['signals', ...args, '--json'], { env })

describe('portcullis signals', () => {
  test('connects a gateway, which accepts the verification event', async () => {
    const redis = await startTestRedis()
    const agreed = secrets('t0ken', { authorization: 'Bearer agreed' })
    const server = await serve({
      policy: signalPolicy([
        { issuer: transmitter.url, audience: EVENT_AUDIENCE, subjectsOf: ['https://gateway.test'] },
      ]),
      env: {
        ...redisVars(redis),
        PUBLIC_URL: 'https://gateway.test',
        ORIGIN_URL: 'http://127.0.0.1:9',
        SIGNAL_TRANSMITTERS: agreed,
        AUDIT_DATABASE: undefined,
      },
      port: 0,
    })
    try {
      const env = { PUBLIC_URL: `${server.url}/`, SIGNAL_TRANSMITTERS: agreed }
      const { code, stdout } = await run(['connect', transmitter.url], env)
      expect([code, JSON.parse(stdout)]).toEqual([
        0,
        {
          stream: 's1',
          created: true,
          status: 'enabled',
          audience: EVENT_AUDIENCE,
          events: ['session-revoked', 'credential-change'],
          pollUrl: null,
          verification: 'requested',
        },
      ])
      expect(transmitter.streams[0]?.delivery).toEqual({
        method: 'urn:ietf:rfc:8935',
        endpoint_url: `${server.url}/-/signals/events`,
        authorization_header: 'Bearer agreed',
      })
      expect(transmitter.calls).toEqual([
        'GET /streams',
        'POST /streams',
        'GET /streams',
        'GET /status',
        'POST /verify',
      ])
      await expect.poll(() => transmitter.pushed).toEqual([202])
      const again = await run(['connect', transmitter.url], env)
      expect(JSON.parse(again.stdout)).toMatchObject({ stream: 's1', created: false })
      const ended = await run(['disconnect', transmitter.url, '--stream', 's1'], env)
      expect([ended.code, JSON.parse(ended.stdout)]).toEqual([0, { stream: 's1', deleted: true }])
      expect(transmitter.streams).toEqual([])
    } finally {
      await server.close()
      await redis.close()
    }
  })

  test('prints where events are polled, with variables of a file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'portcullis-signals-'))
    const file = join(folder, 'gateway.env')
    await writeFile(file, `SIGNAL_TRANSMITTERS='${secrets()}'\n`)
    const args = ['connect', transmitter.url, '--delivery', 'poll', '--values', file]
    const { stdout } = await run(args, { SIGNAL_TRANSMITTERS: '' })
    await rm(folder, { recursive: true })
    expect(JSON.parse(stdout).pollUrl).toBe(`${transmitter.url}/poll?stream_id=s1`)
  })

  test('prints each next step on a line, and warns of a stream without aud', async () => {
    hasAudience = false
    try {
      const args = ['signals', 'connect', transmitter.url, '--delivery', 'poll']
      const { stderr } = await runCli(args, { env: { SIGNAL_TRANSMITTERS: secrets() } })
      expect(stderr.trim().split('\n')).toEqual([
        expect.stringMatching(/^Warning: the stream has no aud/),
        expect.stringMatching(/^In the policy: signals\(\{ transmitters: \[\{"issuer":(?!.*null)/),
        expect.stringMatching(/^The gateway records/),
      ])
    } finally {
      hasAudience = true
    }
  })

  test('says what is wrong', async () => {
    const cases: readonly [
      args: string[],
      env: Record<string, string>,
      code: number,
      text: string,
    ][] = [
      [
        [transmitter.url],
        { PUBLIC_URL: 'https://x.test', SIGNAL_TRANSMITTERS: secrets('wrong') },
        1,
        'the transmitter answered with 401',
      ],
      [
        [`${transmitter.url}/`],
        { PUBLIC_URL: 'https://x.test' },
        1,
        `has the issuer \\"${transmitter.url}\\"`,
      ],
      [[transmitter.url], { SIGNAL_TRANSMITTERS: secrets() }, 2, 'set PUBLIC_URL'],
      [[transmitter.url, '--delivery', 'mail'], {}, 2, '--delivery must be push or poll'],
      [['example'], { PUBLIC_URL: 'https://x.test' }, 2, 'must be the URL'],
      [
        [transmitter.url],
        { PUBLIC_URL: 'https://x.test', SIGNAL_TRANSMITTERS: '{' },
        2,
        'SIGNAL_TRANSMITTERS is not valid',
      ],
    ]
    for (const [args, env, code, text] of cases) {
      const outcome = await run(['connect', ...args], env)
      expect([outcome.code, outcome.stderr]).toEqual([code, expect.stringContaining(text)])
      expect(outcome.stderr).not.toContain('wrong')
    }
    expect(transmitter.streams).toEqual([])
  })
})
