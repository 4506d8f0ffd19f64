/** An isolate that receives signals, over a real Redis, with its audit events. */
import { PUBLIC_URL, startGateway } from '../../harness/gateway.ts'
import { createKey, ISSUER, mint, REMOTE_ISSUER, type TestKey } from '../../harness/issuer.ts'
import { lanesOfRun } from '../../harness/lanes.ts'
import { signalPolicy, TRANSMITTERS } from './policy.ts'
import { type EventOptions, signEvent } from './transmitter.ts'

export type World = Awaited<ReturnType<typeof startWorld>>

interface IsolateOptions {
  readonly transmitters?: Parameters<typeof signalPolicy>[0]
  readonly vars?: Readonly<Record<string, string>>
}

/** Trusts `ISSUER` and `REMOTE_ISSUER`; the first one is the transmitter. */
export async function startWorld(lanes: number = lanesOfRun) {
  const remoteKey = await createKey('other')
  const gateway = await startGateway({
    lanes,
    issuers: (key) =>
      [
        { issuer: ISSUER, key },
        { issuer: REMOTE_ISSUER, key: remoteKey },
      ].map((each) => ({
        issuer: each.issuer,
        audience: PUBLIC_URL,
        jwks: { keys: [each.key.publicJwk] },
      })),
  })
  const { redis, key, connection, environment, close } = gateway
  return {
    redis,
    connection,
    key,
    remoteKey,
    environment,
    /** Creates an isolate. Two isolates share only Redis. */
    isolate({ transmitters = TRANSMITTERS, vars = {} }: IsolateOptions = {}) {
      const { send, ...client } = gateway.client(signalPolicy(transmitters), vars)
      return {
        ...client,
        push: (body: string, headers: object = {}) =>
          send('/-/signals/events', '192.0.2.1', undefined, {
            method: 'POST',
            body,
            headers: { 'content-type': 'application/secevent+jwt', ...headers },
          }),
        read: (token: string) => send('/orders', '192.0.2.1', token),
        send: (path: string, init: Parameters<typeof send>[3]) =>
          send(path, '192.0.2.1', undefined, init),
      }
    },
    reached: gateway.requests,
    token: (claims: object = {}, signer: TestKey = key) =>
      mint(signer, { claims: { aud: PUBLIC_URL, ...claims } }),
    event: (type: string, subject: unknown, options?: EventOptions, payload?: object) =>
      signEvent(key, type, subject, options, payload),
    /** The keys that refuse callers. */
    async effects() {
      const keys = await redis.direct.keys('pc:*')
      return keys.filter((name) => /^pc:(?:cutoff|revoked|ban|signal)/.test(name)).sort()
    },
    close,
  }
}
