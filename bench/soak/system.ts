/** Starts and ends all processes of a soak in order. */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { openInstance } from '../../dev/start/instance.ts'
import { ROOT } from '../../dev/start/settings.ts'
import type { Shutdown } from '../../dev/start/shutdown.ts'
import { AUDIENCE, createIssuer, type Issuer } from '../chaos/issuers.ts'
import { type Child, startChild } from '../processes/child.ts'
import { freePort } from '../processes/proc.ts'
import { createGateway, type Gateway } from './gateway.ts'
import type { OperatorClient } from './operator.ts'
import type { SurroundingsReady } from './protocol.ts'

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const SECRET_BYTES = 32

export interface System {
  readonly surroundings: Child<SurroundingsReady>
  readonly gateways: readonly [Gateway, Gateway]
  readonly issuers: { readonly inline: Issuer; readonly remote: Issuer; readonly stranger: Issuer }
  readonly operator: OperatorClient
  /** An application that logs in its users. */
  readonly app: OperatorClient
}

export async function startSystem(
  seed: number,
  shutdown: Shutdown,
  progress: (what: string) => void,
): Promise<System> {
  const issuers = {
    inline: await createIssuer('inline'),
    remote: await createIssuer('remote'),
    stranger: await createIssuer('stranger'),
  }
  const restToken = randomBytes(SECRET_BYTES).toString('base64url')
  progress('starting Redis, the origin and the fault proxies')
  const surroundings = await startChild<SurroundingsReady>(
    join(import.meta.dirname, 'surroundings.ts'),
    {
      REST_TOKEN: restToken,
      KEY_SET: JSON.stringify({ keys: [issuers.remote.publicJwk] }),
      SEED: String(seed),
    },
  )
  shutdown.defer(surroundings.close)

  const ports = [await freePort(), await freePort()]
  const [operator, app] = [newClient(), newClient()]
  const { urls } = surroundings.ready
  const env = {
    // The same for both gateways: each accepts the tokens of the other.
    PUBLIC_URL: `http://127.0.0.1:${ports[0]}`,
    UPSTASH_REDIS_REST_URL: urls.redis,
    UPSTASH_REDIS_REST_TOKEN: restToken,
    ORIGIN_URL: urls.origin,
    PORTCULLIS_CONFIG: join(import.meta.dirname, 'policy.ts'),
    CLIENTS: JSON.stringify([
      { ...entryOf(operator), grants: ['client_credentials'], roles: ['operator'] },
      { ...entryOf(app), grants: ['refresh_token', EXCHANGE] },
    ]),
    ISSUERS: JSON.stringify([
      {
        issuer: issuers.inline.issuer,
        audience: AUDIENCE,
        jwks: { keys: [issuers.inline.publicJwk] },
      },
      { issuer: issuers.remote.issuer, audience: AUDIENCE, jwksUri: `${urls.keySet}/jwks.json` },
    ]),
  }
  // Occupies the default instance, so that each gateway here gets its own database.
  const place = await openInstance(ROOT, await freePort())
  shutdown.defer(place.close)
  const logFile = (index: number) => join(ROOT, '.wrangler', `soak-gateway-${index + 1}.log`)
  for (const index of ports.keys()) rmSync(logFile(index), { force: true })
  const gateways = [
    createGateway(ports[0] as number, env, logFile(0)),
    createGateway(ports[1] as number, env, logFile(1)),
  ] as const
  for (const [index, gateway] of gateways.entries()) {
    progress(`starting gateway ${index + 1}`)
    shutdown.defer(gateway.stop)
    await gateway.start()
  }
  return { surroundings, gateways, issuers, operator, app }
}

const newClient = (): OperatorClient => ({
  id: randomUUID(),
  secret: randomBytes(SECRET_BYTES).toString('base64url'),
})

const entryOf = ({ id, secret }: OperatorClient) => ({
  id,
  secretSha256: createHash('sha256').update(secret).digest('base64url'),
})
