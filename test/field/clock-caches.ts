/** What is accepted from a cache, and must not be after the clock was set back. */
import { afterEach } from 'vitest'
import { LeaseAccount } from '../../src/access/admission/lease-account.ts'
import type { Principal } from '../../src/access/principal.ts'
import { createRelationCache } from '../../src/access/relations/cache.ts'
import type { RelationQuery } from '../../src/access/relations/decision-point.ts'
import { createRevocationFeed, type FeedMark } from '../../src/access/revocation/feed.ts'
import type { Revocations } from '../../src/access/revocation/revocation.ts'
import { createDiscovery } from '../../src/access/tokens/discovery.ts'
import type { StoredKeySet } from '../../src/access/tokens/key-set-source.ts'
import { createReferences } from '../../src/access/tokens/references.ts'
import { rejected } from '../../src/access/tokens/rejection.ts'
import { createTokenVerifier } from '../../src/access/tokens/verifier.ts'
import { createClientDocuments } from '../../src/features/authorization-code/registration/client-documents.ts'
import { createMcpTools } from '../../src/features/console/mcp-tools.ts'
import { createTokenSource } from '../../src/features/credentials/token-source.ts'
import type { Provider } from '../../src/features/sign-in/provider.ts'
import { createProviderSessions } from '../../src/features/sign-in/provider-sessions.ts'
import type { SessionStore } from '../../src/features/sign-in/session-store.ts'
import { createAccessToken } from '../../src/features/signals/access-token.ts'
import type { RedisCommand } from '../../src/redis/connection.ts'
import { createKeys } from '../../src/redis/keys.ts'
import { keySetOn, publishing, startProvider } from '../access/tokens/provider.ts'
import {
  AUDIENCE,
  createSigner,
  ISSUER,
  issuerOf,
  NOW_MS,
  outcome,
} from '../access/tokens/signer.ts'
import { startHttpServer } from '../harness/http-server.ts'

/** What is accepted from a cache, and must not be after the clock was set back. */
interface World {
  /** Makes one request, and returns its result. */
  request(): Promise<unknown>
  /** Changes the source, so that a request without a cache gets something else. */
  withdraw(): void
}

type Clock = { nowMs: number }
type Start = (clock: Clock) => World | Promise<World>

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

export const [removed, kept] = await Promise.all([
  createSigner('ES256', 'removed'),
  createSigner('ES256', 'kept'),
])
export const both = publishing([removed.publicJwk, kept.publicJwk])
export const one = publishing([kept.publicJwk])

export async function providerOf(behavior: typeof both) {
  const provider = await startProvider(behavior)
  ends.push(provider.close)
  return provider
}

/** It expires later than the clock is set back. */
const PRINCIPAL = { expiresAtSeconds: NOW_MS / 1000 + 86_400 } as Principal

export const RELATION: RelationQuery = {
  tenant: 'acme',
  object: 'order:1',
  relation: 'viewer',
  subject: 'user:anne',
  contextualTuples: [],
}

export const CACHES: readonly (readonly [string, Start])[] = [
  [
    'a key that the issuer has removed',
    async (clock) => {
      const provider = await providerOf(both)
      const issuer = issuerOf([], { jwks: undefined, jwksUri: provider.url })
      const now = () => clock.nowMs
      const verifier = createTokenVerifier({ issuers: [issuer], now, keySets: { cache: null } })
      const token = await removed.token({ exp: NOW_MS / 1000 + 300 })
      return {
        request: () => outcome(() => verifier.verify(token)),
        withdraw() {
          provider.behavior = one
        },
      }
    },
  ],
  [
    'a key set that other isolates share',
    async (clock) => {
      const provider = await providerOf(both)
      let shared: StoredKeySet | undefined
      const cache = {
        read: async () => shared,
        write: async (_: string, stored: StoredKeySet) => {
          shared = stored
        },
      }
      const options = { cache, now: () => clock.nowMs }
      return {
        // Each request is the first one of an isolate.
        async request() {
          const { find, settled } = keySetOn(provider.url, options)
          const found = await find(removed)
          await settled()
          return found
        },
        withdraw() {
          provider.behavior = one
        },
      }
    },
  ],
  [
    'an endpoint that the metadata of the issuer no longer names',
    async (clock) => {
      let name = 'old'
      const server = await startHttpServer((_, response) =>
        response.end(JSON.stringify({ issuer: ISSUER, jwks_uri: `https://idp.test/${name}` })),
      )
      ends.push(server.close)
      const discovery = createDiscovery(ISSUER, 'jwks_uri', [server.url])
      return {
        request: () => discovery.locate(clock.nowMs, 2_000),
        withdraw() {
          name = 'new'
        },
      }
    },
  ],
  [
    'a token that its issuer no longer confirms',
    (clock) => {
      let isActive = true
      const now = () => clock.nowMs
      const verifier = createTokenVerifier({
        issuers: [issuerOf([kept.publicJwk])],
        now,
        calls: {
          opaqueIssuerOf: () => ISSUER,
          callTo: () => async () => {
            if (!isActive) throw rejected('inactive')
            return { principal: PRINCIPAL, expiresAtMs: clock.nowMs + 60_000 }
          },
        },
      })
      return {
        request: () => outcome(() => verifier.verify('opaque')),
        withdraw() {
          isActive = false
        },
      }
    },
  ],
  [
    'a reference without a record',
    (clock) => {
      let isStored = true
      const references = createReferences({ audience: AUDIENCE, now: () => clock.nowMs })
      return {
        async request() {
          if (references.recall('reference') !== undefined) return 'ok'
          if (isStored) references.remember('reference', PRINCIPAL)
          return isStored ? 'ok' : 'refused'
        },
        withdraw() {
          isStored = false
        },
      }
    },
  ],
  [
    'an MCP tool whose approval was withdrawn',
    (clock) => {
      const approval = { hash: 'h', atSeconds: 0, createdBy: 'an operator' }
      let stored: string | null = JSON.stringify(approval)
      const send = async (commands: readonly RedisCommand[]) =>
        commands.map(([name]) => ({ result: name === 'HGET' ? stored : 1 }))
      const tools = createMcpTools({ keys: createKeys(''), send }, () => clock.nowMs)
      const tool = { server: 'server', name: 'tool', hash: 'h', definition: {} }
      return {
        request: () => tools.isApproved(tool),
        withdraw() {
          stored = null
        },
      }
    },
  ],
  [
    'a redirect URI that the document of a client no longer has',
    (clock) => {
      const id = 'https://client.example.com/client.json'
      let path = 'old'
      const documents = createClientDocuments({
        hosts: {},
        schemes: [],
        publicUrl: AUDIENCE,
        now: () => clock.nowMs,
        fetch: async () =>
          Response.json({ client_id: id, redirect_uris: [`https://client.example.com/${path}`] }),
      })
      return {
        async request() {
          const described = await documents.read(id)
          return 'client' in described ? described.client.redirectUris : described
        },
        withdraw() {
          path = 'new'
        },
      }
    },
  ],
  [
    'a relation that was deleted',
    (clock) => {
      const cache = createRelationCache({ maxStalenessMs: 5_000, maxEntries: 10 })
      let outcome: 'allowed' | 'denied' = 'allowed'
      return {
        async request() {
          const known = cache.get(RELATION, clock.nowMs)?.outcome
          if (known !== undefined) return known
          cache.set(RELATION, { decision: { outcome }, version: 1 }, clock.nowMs)
          return outcome
        },
        withdraw() {
          outcome = 'denied'
        },
      }
    },
  ],
  [
    'an access token for an origin that its issuer has replaced',
    (clock) => {
      let token = 'old'
      const source = createTokenSource({
        fetchToken: async () => ({ token, lifeMs: 60_000 }),
        target: 'https://idp.test/token',
        watch: () => ({ changed() {}, refused() {} }),
        now: () => clock.nowMs,
      })
      return {
        request: () => source.current(1_000),
        withdraw() {
          token = 'new'
        },
      }
    },
  ],
  [
    'an access token for a transmitter that its issuer has replaced',
    async (clock) => {
      let token = 'old'
      const server = await startHttpServer((_, response) =>
        response.end(JSON.stringify({ access_token: token, expires_in: 300 })),
      )
      ends.push(server.close)
      const client = { id: 'id', secret: 'secret', tokenEndpoint: server.url }
      const accessToken = createAccessToken({ client }, () => clock.nowMs)
      return {
        request: () => accessToken(),
        withdraw() {
          token = 'new'
        },
      }
    },
  ],
  [
    'a session that the provider has ended',
    (clock) => {
      let isEnded = false
      const ended: string[] = []
      const sessions = createProviderSessions({
        store: {
          reserveRefresh: async () => 'sealed',
          keepTokens: async () => {},
        } as Partial<SessionStore> as SessionStore,
        sessions: { end: async (id) => void ended.push(id) },
        revocations: {} as Revocations,
        terms: { absoluteSeconds: 86_400, roles: [] },
        now: () => clock.nowMs,
      })
      const tokens = { refreshToken: 'refresh', idToken: '' }
      const provider = {
        seal: { open: async () => JSON.stringify(tokens), close: async () => 'sealed' },
        refresh: async () =>
          isEnded
            ? undefined
            : {
                tokens,
                refreshAtSeconds: clock.nowMs / 1_000 + 300,
                principal: async () => undefined,
              },
      } as unknown as Provider
      const principal = {
        tokenId: 'session',
        tokenIssuer: ISSUER,
        signIn: { providerSubject: 'alice' },
      } as Principal
      return {
        async request() {
          await sessions.refresh(principal, provider)
          return ended.length
        },
        withdraw() {
          isEnded = true
        },
      }
    },
  ],
  [
    'a caller whose revocation the view does not have',
    (clock) => {
      const feed = createRevocationFeed({ maxStalenessMs: 60_000 })
      let isRevoked = false
      let mark: FeedMark | undefined
      return {
        async request() {
          if (feed.holds(mark, ['key'], clock.nowMs)) return 'admitted'
          const [position, changed] = isRevoked ? ['2', ['key']] : ['1', []]
          const found = feed.update({ since: feed.cursor, position, changed }, clock.nowMs)
          if (isRevoked) return 'refused'
          mark = found
          return 'admitted'
        },
        withdraw() {
          isRevoked = true
        },
      }
    },
  ],
  [
    'a request for units that the server no longer holds',
    (clock) => {
      const account = new LeaseAccount({ windowSeconds: 60, lease: { ttlMs: 5_000, max: 10 } })
      const request = { units: 4, step: 1, holdMs: 5_100, returned: 0, returnedEndMicros: 0 }
      account.settle(request, { units: 4, endMicros: 0 }, clock.nowMs)
      return {
        request: async () => account.held(clock.nowMs) > 0,
        withdraw() {},
      }
    },
  ],
]

/** Caches that also notice a step to a time after their entry was made. */
export const IN_USE: readonly string[] = [
  'a token that its issuer no longer confirms',
  'a reference without a record',
  'a caller whose revocation the view does not have',
]
