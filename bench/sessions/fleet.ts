/** Several gateways over one Redis: each a process of its own, all with the same keys. */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { exportJWK, generateKeyPair } from 'jose'
import { type Backends, startBackends } from '../backends.ts'
import { TOKENS_CONFIG } from '../bundle.ts'
import { bundleOnce } from '../gateway.ts'
import type { ScenarioContext } from '../scenario.ts'
import { gatewayVariables } from '../target.ts'
import { type BenchTokens, mintTokens } from '../tokens.ts'
import { startWorkerd, type Workerd } from '../workerd.ts'
import type { Cast } from './protocol.ts'

const SERVICE = 'gateway'
const SECRET_BYTES = 32
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const AUDIENCE = 'https://api.bench.test'
const KEY_ID = 'users'

export interface Fleet {
  /** Of each gateway: the policy that ships, with limits that nobody reaches. */
  readonly gateways: readonly { readonly url: string; readonly pid: number }[]
  readonly backends: Backends
  /** Of callers whom every gateway knows. */
  readonly tokens: BenchTokens
  readonly cast: Cast
}

/** Starts so many; all of it is deferred to the scenario's shutdown. */
export async function startFleet(
  { directory, shutdown, onProgress }: ScenarioContext,
  count: number,
): Promise<Fleet> {
  onProgress(`starting ${count} gateways over one Redis`)
  const bundle = await bundleOnce(TOKENS_CONFIG, directory)
  const tokens = await mintTokens(join(directory, 'keys.env'))
  const backends = await startBackends()
  shutdown.defer(backends.close)
  const { cast, variables } = await newCast()
  const gateways: Workerd[] = []
  for (let index = 0; index < count; index++) {
    const gateway = await startWorkerd({
      bundle,
      variables: { ...gatewayVariables(backends, tokens.signingKeys), ...variables },
      names: [SERVICE],
      queueAddress: new URL(backends.originUrl).host,
      directory: mkdtempSync(join(directory, 'gateway-')),
    })
    shutdown.defer(gateway.close)
    shutdown.signal.throwIfAborted()
    gateways.push(gateway)
  }
  return {
    gateways: gateways.map(({ originOf, pid }) => ({ url: originOf(SERVICE), pid })),
    ...{ backends, tokens, cast },
  }
}

/** An identity provider whose logins are exchanged, and the application that does it. */
async function newCast() {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  const named = async (key: typeof privateKey) => ({ ...(await exportJWK(key)), kid: KEY_ID })
  const issuer = 'https://users.bench.test'
  const client = { id: randomUUID(), secret: randomBytes(SECRET_BYTES).toString('base64url') }
  const secretSha256 = createHash('sha256').update(client.secret).digest('base64url')
  const jwks = { keys: [{ ...(await named(publicKey)), alg: 'ES256', use: 'sig' }] }
  return {
    cast: { issuer: { issuer, audience: AUDIENCE, jwk: await named(privateKey) }, client },
    variables: {
      CLIENTS: JSON.stringify([
        { id: client.id, secretSha256, grants: ['refresh_token', EXCHANGE] },
      ]),
      ISSUERS: JSON.stringify([{ issuer, audience: AUDIENCE, jwks }]),
    },
  }
}
