/** An isolate that receives signals, over a real Redis, with its audit events. */
import type { AuditEvent } from '../../../src/audit/event.ts'
import { composeServices, tasksOf } from '../../../src/gateway/compose-services.ts'
import { createGateway } from '../../../src/gateway/create-gateway.ts'
import { WORKERS } from '../../../src/gateway/runtime.ts'
import { createKey, ISSUER, mint, REMOTE_ISSUER, type TestKey } from '../../harness/issuer.ts'
import { connectionOf, lanesOfRun, portsOfLanes } from '../../harness/lanes.ts'
import { redisVars, startTestRedis } from '../../harness/redis.ts'
import { startHttpOrigin } from '../../origin/origin-server.ts'
import { signalPolicy, TRANSMITTERS } from './policy.ts'
import { type EventOptions, signEvent } from './transmitter.ts'

export const AUDIENCE = 'https://gateway.test'

export type World = Awaited<ReturnType<typeof startWorld>>

interface IsolateOptions {
  readonly transmitters?: Parameters<typeof signalPolicy>[0]
  readonly vars?: Readonly<Record<string, string>>
}

/** Trusts `ISSUER` and `REMOTE_ISSUER`; the first one is the transmitter. */
export async function startWorld(lanes: number = lanesOfRun) {
  const redis = await startTestRedis()
  await redis.direct.flushall()
  const origin = await startHttpOrigin((_, response) => response.end('[]'))
  const [key, remoteKey] = [await createKey('idp'), await createKey('other')]
  const environment = {
    ...redisVars(redis),
    PUBLIC_URL: AUDIENCE,
    ORIGIN_URL: `http://127.0.0.1:${origin.port}`,
    ISSUERS: JSON.stringify(
      [
        { issuer: ISSUER, key },
        { issuer: REMOTE_ISSUER, key: remoteKey },
      ].map((each) => ({
        issuer: each.issuer,
        audience: AUDIENCE,
        jwks: { keys: [each.key.publicJwk] },
      })),
    ),
  }

  /** Creates an isolate. Two isolates share only Redis. */
  function isolate({ transmitters = TRANSMITTERS, vars = {} }: IsolateOptions = {}) {
    const policy = signalPolicy(transmitters)
    const events: AuditEvent[] = []
    const auditSink = { record: (event: AuditEvent) => void events.push(event) }
    const services = composeServices({ ...environment, ...vars }, policy, {
      ...WORKERS,
      ...(lanes > 0 && portsOfLanes(lanes)),
    })
    const app = createGateway({ ...services, auditSink }, policy)
    async function send(path: string, init: RequestInit & { readonly headers: object }) {
      const behind: Promise<unknown>[] = []
      const context = {
        waitUntil: (promise: Promise<unknown>) => void behind.push(promise),
        passThroughOnException() {},
        props: {},
      }
      const headers = { 'cf-connecting-ip': '192.0.2.1', ...init.headers }
      const response = await app.request(`${AUDIENCE}${path}`, { ...init, headers }, {}, context)
      await Promise.all(behind)
      return response
    }
    return {
      events,
      push: (body: string, headers: object = {}) =>
        send('/-/signals/events', {
          method: 'POST',
          body,
          headers: { 'content-type': 'application/secevent+jwt', ...headers },
        }),
      /** Runs the work without a request once, as a timer does. */
      async runTasks() {
        for (const task of tasksOf(services)) await task.run((work) => void work)
      },
      read: (token: string) => send('/orders', { headers: { authorization: `Bearer ${token}` } }),
      send,
    }
  }

  return {
    redis,
    /** Writes what isolates read. */
    connection: connectionOf(redis, lanes),
    key,
    remoteKey,
    environment,
    isolate,
    reached: origin.requests,
    token: (claims: object = {}, signer: TestKey = key) =>
      mint(signer, { claims: { aud: AUDIENCE, ...claims } }),
    event: (type: string, subject: unknown, options?: EventOptions, payload?: object) =>
      signEvent(key, type, subject, options, payload),
    /** The keys that refuse callers. */
    async effects() {
      const keys = await redis.direct.keys('pc:*')
      return keys.filter((name) => /^pc:(?:cutoff|revoked|ban|signal)/.test(name)).sort()
    },
    async close() {
      await origin.close()
      await redis.close()
    },
  }
}
