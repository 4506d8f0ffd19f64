/** Gateways on Node, and the Worker with which they are compared. */
import { join } from 'node:path'
import { freePort } from '../../dev/free-port.ts'
import { HANDWRITTEN_CONFIG, handwritten } from '../peers/handwritten/start.ts'
import { ours } from '../peers/ours.ts'
import type { Grounds, Peer } from '../peers/peer.ts'
import { startServer } from '../peers/server.ts'
import { SIGN_IN_VARIABLES } from '../stack/browser-sessions.ts'
import { bundleOnce, LAYERS_CONFIG } from '../stack/bundle.ts'
import { gatewayVariables } from '../stack/gateway.ts'
import { startWorkerd } from '../stack/workerd.ts'

export const BY_HAND_CONFIG = 'bench/workers/by-hand.toml'
/** Workers that this comparison bundles. */
export const BUNDLED = [LAYERS_CONFIG, HANDWRITTEN_CONFIG, BY_HAND_CONFIG]

/** As in the files for self-hosting. */
const FLAGS = ['--max-semi-space-size=16']

/** Starts a file of this folder as a process on this Node. */
async function startProcess(
  file: string,
  grounds: Grounds,
  env: Readonly<Record<string, string>>,
  flags: readonly string[] = [],
) {
  const port = await freePort()
  const server = await startServer({
    program: process.execPath,
    args: [...FLAGS, ...flags, join(import.meta.dirname, file)],
    env: { NODE_ENV: 'production', PORT: String(port), ...env },
    port,
    directory: grounds.directory,
  })
  return { ...server, version: `Node ${process.versions.node}` }
}

const commonOf = ({ backends, jwks, issuer, limit }: Grounds) => ({
  ORIGIN_URL: backends.originUrl,
  JWKS: jwks,
  ISSUER: issuer,
  LIMIT: String(limit),
})

const BY_HAND = {
  optional: false,
  inQuick: true,
  compiles: true,
  identifies: true,
  refuses: {
    missing: 401,
    forged: 401,
    expired: 401,
    revoked: 401,
    powerless: 403,
    ambiguous: 404,
  },
  does: {
    cachesTokens: 'yes',
    revokes: 'single tokens',
    limit: 'in Redis',
    audit: 'yes',
    identity: 'identity headers',
  },
} as const satisfies Partial<Peer>

export const bareOnNode: Peer = {
  id: 'bare',
  title: 'bare proxy on Node',
  optional: false,
  inQuick: true,
  compiles: true,
  refuses: {},
  identifies: false,
  redisCalls: [0, 0],
  does: { cachesTokens: '-', revokes: 'no', limit: 'no', audit: 'no', identity: 'no' },
  start: (grounds) => startProcess('bare.ts', grounds, { ORIGIN_URL: grounds.backends.originUrl }),
}

/** Calls over RESP do not pass the REST server, which counts calls. */
const OVER_RESP = { redisCalls: [0, 0] } as const

export const byHandOnNode: Peer = {
  ...BY_HAND,
  ...OVER_RESP,
  id: 'by-hand',
  title: 'by hand on Node',
  start: (grounds) =>
    startProcess('by-hand.ts', grounds, {
      ...commonOf(grounds),
      REDIS_URL: grounds.backends.redis.directUrl,
    }),
}

export const byHandOnWorkers: Peer = {
  ...BY_HAND,
  id: 'by-hand-workerd',
  title: 'by hand on workerd',
  redisCalls: [1, 1],
  async start(grounds) {
    const { backends, directory, bundles } = grounds
    const { pid, close, originOf } = await startWorkerd({
      bundle: await bundleOnce(BY_HAND_CONFIG, bundles),
      variables: {
        ...commonOf(grounds),
        UPSTASH_REDIS_REST_URL: backends.redis.url,
        UPSTASH_REDIS_REST_TOKEN: backends.redis.token,
      },
      names: ['by-hand'],
      queueAddress: new URL(backends.originUrl).host,
      directory,
    })
    return { url: originOf('by-hand'), pid, version: 'workerd', close }
  },
}

export const readmeOnNode: Peer = {
  ...handwritten,
  id: 'readme',
  title: 'as READMEs show it, on Node',
  async start(grounds) {
    const { url, token } = grounds.backends.redis
    const server = await startProcess('readme.ts', grounds, {
      ...commonOf(grounds),
      UPSTASH_REDIS_REST_URL: url,
      UPSTASH_REDIS_REST_TOKEN: token,
    })
    return { ...server, url: `${server.url}/in-turn` }
  },
}

export const readmeOnWorkers: Peer = {
  ...handwritten,
  id: 'readme-workerd',
  title: 'as READMEs show it, on workerd',
}

export const oursOnWorkers: Peer = { ...ours, id: 'worker', title: 'Portcullis on workerd' }

export const oursOnNode = variant('strict', 'node', 'Portcullis on Node')
export const leasedOnNode = variant('leased', 'leased', 'Portcullis on Node, leased, one caller')
export const streamedOnNode = variant('strict', 'stream', 'Portcullis on Node, audit stream', {
  AUDIT_STREAM: 'redis',
})
export const relatedOnNode = variant('related', 'related', 'Portcullis on Node, relations')
export const browserOnNode = variant(
  'browser',
  'browser',
  'Portcullis on Node, sign-in',
  SIGN_IN_VARIABLES,
)
export const twoProcesses = variant('strict', 'two', 'Portcullis on Node, two processes', {
  PROCESSES: '2',
})

/** Returns our gateway with an inspector at `authority` (`host:port`). */
export const inspectedOnNode = (authority: string): Peer =>
  variant('strict', 'inspected', oursOnNode.title, {}, [`--inspect=${authority}`])

function variant(
  name: string,
  id: string,
  title: string,
  env: Readonly<Record<string, string>> = {},
  flags: readonly string[] = [],
): Peer {
  return {
    ...ours,
    ...OVER_RESP,
    id,
    title,
    start(grounds) {
      const { backends, signingKeys, limit } = grounds
      const { UPSTASH_REDIS_REST_URL, UPSTASH_REDIS_REST_TOKEN, ...variables } = gatewayVariables(
        backends,
        signingKeys,
      )
      const own = { REDIS_URL: backends.redis.directUrl, LIMIT: String(limit), VARIANT: name }
      return startProcess('gateway.ts', grounds, { ...variables, ...own, ...env }, flags)
    },
  }
}
