/** Several gateways over one Redis, each in its own process, all with the same keys. */
import { exportJWK, generateKeyPair } from 'jose'
import { bundleOnce, TOKENS_CONFIG } from '../stack/bundle.ts'
import { clientEntry, EXCHANGE, newClient } from '../stack/credentials.ts'
import {
  type RunningGateway,
  type StartContext,
  startGateway,
  startGround,
} from '../stack/gateway.ts'
import type { Cast } from './protocol.ts'

const SERVICE = 'gateway'
const ISSUER = 'https://users.bench.test'
const AUDIENCE = 'https://api.bench.test'
const KEY_ID = 'users'

export interface Fleet extends Pick<RunningGateway, 'backends'> {
  /** The gateways: the shipped policy with limits that are never reached. */
  readonly gateways: readonly { readonly url: string; readonly pid: number }[]
  readonly cast: Cast
}

/** Starts `count` gateways. All processes end with the scenario. */
export async function startFleet(context: StartContext, count: number): Promise<Fleet> {
  context.onProgress(`starting ${count} gateways over one Redis`)
  const ground = await startGround(context)
  const bundle = await bundleOnce(TOKENS_CONFIG, context.directory)
  const { cast, variables } = await newCast()
  const gateways: RunningGateway[] = []
  for (let index = 0; index < count; index++)
    gateways.push(await startGateway(context, { ground, bundle, names: [SERVICE], variables }))
  return {
    gateways: gateways.map(({ originOf, pid }) => ({ url: originOf(SERVICE), pid })),
    backends: ground.backends,
    cast,
  }
}

/** Creates an identity provider, and the application that exchanges its tokens for sessions. */
async function newCast() {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  const named = async (key: typeof privateKey) => ({ ...(await exportJWK(key)), kid: KEY_ID })
  const client = newClient()
  const jwks = { keys: [{ ...(await named(publicKey)), alg: 'ES256', use: 'sig' }] }
  const issuer = { issuer: ISSUER, audience: AUDIENCE, jwk: await named(privateKey) }
  return {
    cast: { issuer, client },
    variables: {
      CLIENTS: JSON.stringify([await clientEntry(client, { grants: ['refresh_token', EXCHANGE] })]),
      ISSUERS: JSON.stringify([{ issuer: ISSUER, audience: AUDIENCE, jwks }]),
    },
  }
}
