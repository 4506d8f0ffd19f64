/** Runs requests through the real pipeline of a policy, in memory, and reports each decision. */
import { decodeJwt } from 'jose'
import type { RelationQuery } from '../access/relations/decision-point.ts'
import type { RevokedBeforeKind } from '../access/revocation/revocation.ts'
import { tokenIdHash } from '../access/token-id.ts'
import type { AuditEvent } from '../audit/event.ts'
import type { Services } from '../gateway/compose-services.ts'
import { createGateway, type Gateway } from '../gateway/create-gateway.ts'
import { createExplanation, type Explanation } from '../gateway/explanation/explanation.ts'
import { createStageRecorder } from '../gateway/explanation/stage-recorder.ts'
import type { Fetches } from '../origin/origin.ts'
import { type Policy, requirePolicy } from '../policy/policy.ts'
import { DEFAULT_MAX_TOKEN_AGE_SECONDS } from '../validators/issuer.ts'
import type { TokenSource } from '../validators/token-source.ts'
import { createCredentials } from './credentials.ts'
import { type Decision, type OriginRequest, readDecision } from './decision.ts'
import { createIssuer, type Issuer } from './issuer.ts'
import { exchangeable, memoryServices, statefulServices } from './memory-services.ts'
import { createMemoryStore } from './memory-store.ts'
import { credentialHeader, parseRequest } from './request.ts'
import type {
  Caller,
  TestedApiKey,
  TestedPlan,
  TestedRequest,
  TestedRevocation,
} from './tested-request.ts'

export interface PolicyTesterOptions {
  /** Identifiers of the trusted issuers. Default `https://issuer.test`. */
  readonly issuers?: readonly [string, ...string[]]
  /** Where tokens of the issuers are read from. Default `Authorization`. */
  readonly tokenSources?: readonly TokenSource[]
  /** Responds to requests that the gateway allows. Default: status 200 without a body. */
  readonly origin?: (request: Request) => Response | Promise<Response>
  /** Reports whether a relation exists; the model is not evaluated. Default: none exists. */
  readonly relations?: (query: RelationQuery) => boolean
  /** When the clock begins, in milliseconds since the epoch. Default: now. */
  readonly startMs?: number
}

export interface PolicyTester {
  /**
   * Returns the decision about a request, written as `GET /orders/1`. Counters and bans are up to
   * date when the promise resolves. Throws `TypeError` for a request that cannot be built.
   */
  request(line: string, request?: TestedRequest): Promise<Decision>
  /**
   * Decides about a request as {@link request} does, and returns each stage: what it read, what it
   * decided, and why. The request counts. Throws `TypeError` for a path of the gateway itself, and
   * for a request that cannot be built.
   */
  explain(line: string, request?: TestedRequest): Promise<Explanation>
  /** Signs the token that a caller of `request` has. */
  token(caller?: Caller): Promise<string>
  /** Creates an API key, to send as `token`. */
  apiKey(key: TestedApiKey): Promise<string>
  /** Gives a party a plan, as an operator does: in force from the next request on. */
  assignPlan(assignment: TestedPlan): Promise<void>
  /** Revokes as an operator does: in force from the next request on. */
  revoke(revocation: TestedRevocation): Promise<void>
  /** Moves the clock, which otherwise does not move. */
  advanceSeconds(seconds: number): void
}

const PUBLIC_URL = 'https://gateway.test'
const DEFAULT_ISSUERS = ['https://issuer.test'] as const
/** An address for documentation (RFC 5737), which the policy does not exempt from bans. */
const DEFAULT_ADDRESS = '192.0.2.1'

/** Entries of each cache of a renewed tester, which serves a few requests before the next renewal. */
const RENEWED_CACHES = 16

const CUTOFFS = [
  ['sub', 'subject'],
  ['client', 'client'],
  ['tenant', 'tenant'],
  ['session', 'session'],
] as const satisfies readonly (readonly [keyof TestedRevocation, RevokedBeforeKind])[]

/**
 * Creates a tester for a policy of `definePolicy`. It runs the pipeline of the gateway, with stores
 * in memory, an origin in memory, and its own clock. It makes no call and needs no environment.
 *
 * Does NOT test what the policy does not decide: the configuration of issuers, the signatures of
 * `X-Auth-Assertion`, leases and staleness (every request is checked), the model of relations, and the
 * routes of opt-in features such as `operators()`.
 *
 * @example
 * ```ts
 * const tester = policyTester(policy)
 * const reader = { sub: 'alice', roles: ['reader'] }
 * expect(await tester.request('GET /orders/1', { as: reader })).toMatchObject({ allowed: true })
 * expect(await tester.request('POST /orders', { as: reader, body: {} })).toMatchObject({
 *   status: 403,
 *   code: 'insufficient_permission',
 * })
 * ```
 */
export function policyTester(policy: Policy, options: PolicyTesterOptions = {}): PolicyTester {
  return renewableTester(policy, options)
}

/** A tester for many tests, each of which begins with a new state. */
interface RenewableTester extends PolicyTester {
  /** Forgets earlier requests: limits, bans, revocations and API keys. Tokens stay valid. */
  renew(): Promise<void>
}

export function renewableTester(
  policy: Policy,
  options: PolicyTesterOptions = {},
): RenewableTester {
  requirePolicy(policy)
  const { issuers: names = DEFAULT_ISSUERS, startMs = Date.now(), tokenSources } = options
  let nowMs = startMs
  const now = () => nowMs
  let store = createMemoryStore(now)
  const events = new Map<string, AuditEvent>()
  const received = new Map<string, OriginRequest>()
  const credentials = createCredentials({
    names,
    issuers: async () => (await ready()).issuers,
    store: () => store,
    publicUrl: PUBLIC_URL,
    now,
  })
  let prepared: Promise<Prepared> | undefined
  /** A gateway on the same services: only it watches the stages. */
  let explaining: ReturnType<typeof prepareExplanation> | undefined

  async function prepare(): Promise<Prepared> {
    const made = await Promise.all(names.map((issuer) => createIssuer({ issuer, now })))
    const memory = memoryServices({
      policy,
      publicUrl: PUBLIC_URL,
      issuers: made.map(({ entry }) => entry),
      tokenSources,
      store,
      auditSink: { record: (event) => void events.set(event.requestId, event) },
      origin: recordingOrigin(received, options.origin),
      hasRelation: options.relations ?? (() => false),
      now,
    })
    const issuers = new Map(made.map((issuer) => [issuer.issuer, issuer]))
    const { services, exchange } = exchangeable(memory)
    return { services, exchange, gateway: createGateway(services, policy), issuers }
  }

  async function prepareExplanation() {
    const { services } = await ready()
    const recorder = createStageRecorder(policy)
    return { gateway: createGateway(services, policy, recorder.observe), recorder }
  }

  function ready(): Promise<Prepared> {
    prepared ??= prepare()
    return prepared
  }

  async function decide(gateway: Gateway, line: string, tested: TestedRequest): Promise<Decided> {
    const { source, host, address = DEFAULT_ADDRESS, dpop = false, body, headers = {} } = tested
    const { proofs } = (await ready()).services
    const credential = await credentials.credentialOf(tested)
    const scheme = dpop ? 'DPoP' : 'Bearer'
    const added = {
      'cf-connecting-ip': address,
      ...(credential !== undefined && credentialHeader(credential, source, scheme)),
    }
    const base = host === undefined ? PUBLIC_URL : `https://${host}`
    const request = parseRequest(base, line, { body, headers }, added)
    if (dpop && credential !== undefined && !request.headers.has('dpop')) {
      const nonce = policy.tokens.dpopNonceRequired ? await proofs.nonce() : undefined
      request.headers.set('dpop', await credentials.proofOf(request, credential, nonce))
    }
    const behind: Promise<unknown>[] = []
    const response = await complete(gateway.fetch(request, {}, executionContext(behind)))
    await Promise.allSettled(behind)
    const id = response.headers.get('x-request-id') ?? ''
    const decided = { response, event: events.get(id), origin: received.get(id) }
    events.delete(id)
    received.delete(id)
    return decided
  }

  return {
    async request(line, request = {}) {
      const { gateway } = await ready()
      const { response, event, origin } = await decide(gateway, line, request)
      return readDecision(response, event, origin)
    },

    async explain(line, request = {}) {
      explaining ??= prepareExplanation()
      const { gateway, recorder } = await explaining
      const { event, origin } = await decide(gateway, line, request)
      if (event === undefined)
        throw new TypeError(`explain: ${line} is a path of the gateway, which no policy decides`)
      return createExplanation(event, recorder.take(event), origin)
    },

    token: (caller = {}) => credentials.tokenOf(caller),
    apiKey: credentials.createKey,
    assignPlan: credentials.assignPlan,

    async revoke({ token, issuer = names[0], ...cutoffs }) {
      if (token !== undefined) {
        const { iss = '', jti = '', exp = 0 } = decodeJwt(token)
        await store.revocations.revokeToken({
          tokenIdHash: await tokenIdHash(iss, jti),
          untilSeconds: exp,
        })
      }
      for (const [name, kind] of CUTOFFS) {
        const value = cutoffs[name]
        if (value === undefined) continue
        await store.revocations.revokeBefore({
          kind,
          issuer,
          value,
          atSeconds: nowMs / 1000,
          ttlSeconds: DEFAULT_MAX_TOKEN_AGE_SECONDS,
        })
      }
    },

    async renew() {
      const { services, exchange } = await ready()
      store = createMemoryStore(now)
      credentials.forgetKeys()
      exchange(statefulServices({ policy, store, now }, services.references, RENEWED_CACHES))
    },

    advanceSeconds(seconds) {
      nowMs += seconds * 1000
    },
  }
}

/** Built for the first request, because keys are created asynchronously. */
interface Prepared {
  readonly exchange: ReturnType<typeof exchangeable>['exchange']
  readonly services: Services
  readonly gateway: Gateway
  readonly issuers: ReadonlyMap<string, Issuer>
}

interface Decided {
  readonly response: Response
  /** Undefined for a path of the gateway that is not audited. */
  readonly event: AuditEvent | undefined
  readonly origin: OriginRequest | undefined
}

/** Reads the body: some work behind a response ends with it. */
async function complete(answer: Response | Promise<Response>): Promise<Response> {
  const response = await answer
  return response.body === null ? response : new Response(await response.arrayBuffer(), response)
}

/** Collects what the gateway does behind its response. */
function executionContext(behind: Promise<unknown>[]): ExecutionContext {
  return {
    waitUntil: (promise: Promise<unknown>) => void behind.push(promise),
    passThroughOnException() {},
    props: {},
  } as ExecutionContext
}

/** Creates an origin that records requests by their id. */
function recordingOrigin(
  received: Map<string, OriginRequest>,
  respond: PolicyTesterOptions['origin'] = () => new Response(),
): Fetches {
  return {
    async fetch(url, { method = 'GET', headers, body }) {
      const fields = Object.fromEntries(new Headers(headers))
      const text = await new Response(body).text()
      const path = url.slice(new URL(url).origin.length)
      received.set(fields['x-request-id'] ?? '', { method, path, headers: fields, body: text })
      const hasBody = method !== 'GET' && method !== 'HEAD'
      return respond(new Request(url, { method, headers: fields, body: hasBody ? text : null }))
    },
  }
}
