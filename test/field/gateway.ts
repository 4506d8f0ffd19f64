/** Gateways that try the cases of the table: over a real Redis, an issuer, and an origin of each case. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { startGateway } from '../harness/gateway.ts'
import { startHttpServer } from '../harness/http-server.ts'
import { AUDIENCE, ISSUER, mint, type TestKey, type TokenOptions } from '../harness/issuer.ts'
import { sendRaw } from '../harness/raw.ts'
import type { TestRedis } from '../harness/redis.ts'
import { exchange, type Reply } from '../origin/wire.ts'
import type { IssuerOfCase } from './case.ts'
import policy from './policy.ts'
import type { RuntimeName } from './runtimes.ts'

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
  const emptyList: Answer = (request, response) => {
    request
      .resume()
      .on('end', () => response.setHeader('content-type', 'application/json').end('[]'))
  }
  let answer = emptyList
  const keySets = await startHttpServer(({ url = '' }, response) => {
    const { keys, before = '' } = issuers[Number(url.slice(1))] ?? {}
    response.setHeader('content-type', 'application/json').end(before + JSON.stringify({ keys }))
  })
  const started = await startGateway({
    runtime,
    policy,
    entry: 'test/field/worker.ts',
    origin: (request, response) => answer(request, response),
    issuers: (key) => [
      { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } },
      ...issuers.map(({ issuer, settings }, at) => ({
        issuer,
        audience: AUDIENCE,
        jwksUri: `${keySets.url}/${at}`,
        ...settings,
      })),
    ],
    // Otherwise events are written to the output.
    variables: { ...(runtime === 'Node' && { AUDIT_STREAM: 'redis' }), ...variables },
  })
  const { port, redis, key, originUrl, requests, url } = started
  const gateway: FieldGateway = {
    runtime,
    port,
    redis,
    originUrl,
    key,
    reached: requests,
    answerWith(next) {
      answer = next
    },
    token: (options = {}) =>
      mint(key, { ...options, claims: { roles: ['writer'], ...options.claims } }),
    fetch: (path, init) => fetch(url + path, { redirect: 'manual', ...init }),
    rawText: async (lines, body = '') =>
      (await sendRaw(url, Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`))).text,
    raw: (lines, body = '') => exchange(port, `${lines.join('\r\n')}\r\n\r\n${body}`),
  }
  return {
    gateway,
    reset() {
      requests.length = 0
      answer = emptyList
    },
    async close() {
      await started.close()
      await keySets.close()
    },
  }
}
