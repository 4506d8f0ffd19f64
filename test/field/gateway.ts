/** Gateways that try the cases of the table: over a real Redis, an issuer, and an origin of each case. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { serve } from '../../src/runtimes/node/index.ts'
import { startHttpServer } from '../harness/http-server.ts'
import {
  AUDIENCE,
  createKey,
  ISSUER,
  mint,
  type TestKey,
  type TokenOptions,
} from '../harness/issuer.ts'
import { freePort } from '../harness/process.ts'
import { sendRaw } from '../harness/raw.ts'
import { redisVars, startTestRedis, type TestRedis } from '../harness/redis.ts'
import { startHttpOrigin } from '../origin/origin-server.ts'
import { exchange, type Reply } from '../origin/wire.ts'
import { startWorkerd } from '../origin/workerd.ts'
import type { IssuerOfCase } from './case.ts'
import policy from './policy.ts'
import type { RuntimeName } from './runtimes.ts'

export const PUBLIC_URL = 'https://gateway.test'

/** Answers what reaches the origin. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => void

/** What a case can use. */
export interface FieldGateway {
  readonly runtime: RuntimeName
  readonly port: number
  readonly redis: TestRedis
  /** Where the origin listens, as an origin sees its own address. */
  readonly originUrl: string
  /** The key of the issuer `ISSUER`. */
  readonly key: TestKey
  /** The requests that reached the origin in this case. */
  readonly reached: readonly IncomingMessage[]
  /** Sets what the origin answers in this case. Default: an empty JSON list. */
  answerWith(answer: Answer): void
  /** Signs an access token. Its role is `writer`, unless `options` name others. */
  token(options?: TokenOptions): Promise<string>
  /** Sends a request with a URL that clients of the web can send. */
  fetch(path: string, init?: RequestInit): Promise<Response>
  /** Sends bytes, and reads all that comes until the connection ends. */
  rawText(lines: readonly string[], body?: string): Promise<string>
  /** Sends bytes, and reads one response. */
  raw(lines: readonly string[], body?: string): Promise<Reply>
}

interface Started {
  readonly gateway: FieldGateway
  /** Begins another case: no request has reached the origin, which answers an empty list. */
  reset(): void
  close(): Promise<void>
}

/** Starts a gateway on one runtime. `variables` replace those of the table. */
export async function startFieldGateway(
  runtime: RuntimeName,
  variables: Readonly<Record<string, string>>,
  issuers: readonly IssuerOfCase[],
): Promise<Started> {
  const redis = await startTestRedis()
  await redis.direct.flushall()
  const port = await freePort()
  const key = await createKey('field')
  const emptyList: Answer = (request, response) => {
    request
      .resume()
      .on('end', () => response.setHeader('content-type', 'application/json').end('[]'))
  }
  let answer = emptyList
  const origin = await startHttpOrigin((request, response) => answer(request, response))
  const originUrl = `http://127.0.0.1:${origin.port}`
  const keySets = await startHttpServer(({ url = '' }, response) => {
    const { keys, before = '' } = issuers[Number(url.slice(1))] ?? {}
    response.setHeader('content-type', 'application/json').end(before + JSON.stringify({ keys }))
  })
  const vars = {
    ...redisVars(redis),
    PUBLIC_URL,
    ORIGIN_URL: originUrl,
    ISSUERS: JSON.stringify([
      { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } },
      ...issuers.map(({ issuer, settings }, at) => ({
        issuer,
        audience: AUDIENCE,
        jwksUri: `${keySets.url}/${at}`,
        ...settings,
      })),
    ]),
    ...variables,
  }
  const running = await start[runtime](vars, port)
  const gateway: FieldGateway = {
    runtime,
    port,
    redis,
    originUrl,
    key,
    reached: origin.requests,
    answerWith(next) {
      answer = next
    },
    token: (options = {}) =>
      mint(key, { ...options, claims: { roles: ['writer'], ...options.claims } }),
    fetch: (path, init) =>
      fetch(`http://127.0.0.1:${port}${path}`, { redirect: 'manual', ...init }),
    rawText: async (lines, body = '') =>
      (
        await sendRaw(
          `http://127.0.0.1:${port}`,
          Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`),
        )
      ).text,
    raw: (lines, body = '') => exchange(port, `${lines.join('\r\n')}\r\n\r\n${body}`),
  }
  return {
    gateway,
    reset() {
      origin.requests.length = 0
      answer = emptyList
    },
    async close() {
      await running.stop()
      await origin.close()
      await keySets.close()
      await redis.close()
    },
  }
}

type Start = (
  vars: Readonly<Record<string, string>>,
  port: number,
) => Promise<{ stop(): Promise<unknown> }>

const start: Readonly<Record<RuntimeName, Start>> = {
  workerd: (vars, port) => startWorkerd({ entry: 'test/field/worker.ts', vars, port }),
  async Node(vars, port) {
    // Otherwise events are written to the output.
    const env = { ...vars, AUDIT_STREAM: 'redis' }
    const server = await serve({ policy, env, port, graceMs: 1_000 })
    return { stop: () => server.close() }
  },
}
