/** Starts and ends all processes of a soak in order. */
import { mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { freePort } from '../../dev/free-port.ts'
import { openInstance } from '../../dev/start/instance.ts'
import { HOST, ROOT } from '../../dev/start/settings.ts'
import type { Shutdown } from '../../dev/start/shutdown.ts'
import {
  type Arrival,
  type Dependencies,
  listen,
  startDependencies,
  startOrigin,
} from '../chaos/dependencies.ts'
import { AUDIENCE, createIssuer, type Issuer } from '../chaos/issuers.ts'
import { clientEntry, newClient, newSigningKeys, type TokenClient } from '../stack/credentials.ts'
import { auditFileOnNode } from './audit.ts'
import { PROXIED, type Proxied } from './faults.ts'
import { createGateway, type Gateway } from './gateway.ts'
import { bundleForNode } from './node-bundle.ts'
import type { SoakRuntime } from './options.ts'

/** Longer than the bytes after which a fault resets the connection. */
const ORIGIN_BODY = JSON.stringify({ filler: 'x'.repeat(300) })

export interface System {
  readonly dependencies: Dependencies
  readonly gateways: readonly [Gateway, Gateway]
  readonly issuers: { readonly inline: Issuer; readonly remote: Issuer; readonly stranger: Issuer }
  readonly operator: TokenClient
}

export interface SystemOptions {
  readonly runtime: SoakRuntime
  readonly seed: number
  readonly shutdown: Shutdown
  readonly progress: (what: string) => void
  onArrival(arrival: Arrival): void
}

export async function startSystem(options: SystemOptions): Promise<System> {
  const { runtime, seed, shutdown, progress, onArrival } = options
  const issuers = {
    inline: await createIssuer('inline'),
    remote: await createIssuer('remote'),
    stranger: await createIssuer('stranger'),
  }
  progress('starting Redis, the origin and the fault proxies')
  const keySet = JSON.stringify({ keys: [issuers.remote.publicJwk] })
  const keySetPort = await listen((_, response) => {
    response.setHeader('Content-Type', 'application/json').end(keySet)
  }, shutdown)
  const originPort = await startOrigin(onArrival, ORIGIN_BODY, shutdown)
  const redis = runtime === 'node' ? 'resp' : 'redis'
  const targets = { redis, keySet: keySetPort, origin: originPort } as const
  const dependencies = await startDependencies(
    { seed, targets: PROXIED.map((name) => targets[name]) },
    shutdown,
  )
  const urlOf = (name: Proxied) => dependencies.urls[PROXIED.indexOf(name)] as string

  const ports = [await freePort(), await freePort()]
  const auditFile = auditFileOnNode(ports[0] as number)
  if (runtime === 'node') {
    mkdirSync(dirname(auditFile), { recursive: true })
    await bundleForNode()
  }
  const operator = newClient()
  const { inline, remote } = issuers
  const env = {
    // The same for both gateways: each accepts the tokens of the other.
    PUBLIC_URL: `http://${HOST}:${ports[0]}`,
    ...(runtime === 'node'
      ? {
          REDIS_URL: urlOf('redis').replace(/^http/, 'redis'),
          SIGNING_KEYS: await newSigningKeys(['ES256']),
          TRUSTED_PROXIES: HOST,
          // One file of both, as on one machine.
          AUDIT_DATABASE: `sqlite:${auditFile}`,
        }
      : {
          UPSTASH_REDIS_REST_URL: urlOf('redis'),
          UPSTASH_REDIS_REST_TOKEN: dependencies.restToken,
        }),
    ORIGIN_URL: urlOf('origin'),
    PORTCULLIS_CONFIG: join(import.meta.dirname, 'policy.ts'),
    CLIENTS: JSON.stringify([
      await clientEntry(operator, { grants: ['client_credentials'], roles: ['operator'] }),
    ]),
    ISSUERS: JSON.stringify([
      { issuer: inline.issuer, audience: AUDIENCE, jwks: { keys: [inline.publicJwk] } },
      { issuer: remote.issuer, audience: AUDIENCE, jwksUri: `${urlOf('keySet')}/jwks.json` },
    ]),
  }
  // Occupies the default instance, so that each of these gateways has its own database.
  const place = await openInstance(ROOT, await freePort())
  shutdown.defer(place.close)
  const logFile = (index: number) => join(ROOT, '.wrangler', `soak-gateway-${index + 1}.log`)
  for (const index of ports.keys()) rmSync(logFile(index), { force: true })
  const gateways = [
    createGateway(runtime, ports[0] as number, env, logFile(0)),
    createGateway(runtime, ports[1] as number, env, logFile(1)),
  ] as const
  for (const [index, gateway] of gateways.entries()) {
    progress(`starting gateway ${index + 1}`)
    shutdown.defer(gateway.stop)
    await gateway.start()
  }
  return { dependencies, gateways, issuers, operator }
}
