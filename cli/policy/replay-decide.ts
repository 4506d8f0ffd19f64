/** Decides recorded requests again, by the pipeline of the gateway under another policy. */
import type { AuditEvent } from '../../src/audit/event.ts'
import { ERASED_ADDRESS } from '../../src/audit/personal.ts'
import { isHostPattern } from '../../src/http/host.ts'
import { isPathPattern } from '../../src/http/path-pattern.ts'
import type { Policy, PolicyRoute } from '../../src/policy/policy.ts'
import type { PolicyTester, PolicyTesterOptions } from '../../src/testing/index.ts'
import { isSame } from './change.ts'
import { queryOf } from './diff-route.ts'
import { methodOf, overlapping, type Place, placesOf, rowsOf } from './replay-paths.ts'

/** The part of an audit event that a replay uses. */
export interface RecordedEvent
  extends Pick<
    AuditEvent,
    'method' | 'route' | 'host' | 'origin' | 'decision' | 'reason' | 'address'
  > {
  readonly actor: Pick<AuditEvent['actor'], 'issuer' | 'subject' | 'client'>
  /** Absent in events of earlier versions. */
  readonly grants?: Grants | undefined
}

/** Roles and scopes of a caller. */
export interface Grants {
  readonly roles: readonly string[]
  readonly scopes: readonly string[]
}

/** Returns recorded grants, unless an event was too large for all of them. */
export const wholeGrants = (grants: Grants | undefined): Grants | undefined =>
  grants !== undefined && [...grants.roles, ...grants.scopes].some((name) => name.startsWith('…[+'))
    ? undefined
    : grants

export type Prediction =
  /** A null reason: the request is refused, but several stages could be the first to refuse it. */
  | { readonly decision: 'allow' | 'deny'; readonly reason: string | null }
  /** `why` names what an event does not have, or the stage that cannot be replayed. */
  | { readonly decision: 'unknown'; readonly why: string }

export interface ReplayOptions {
  readonly proposed: Policy
  /** The policy that recorded the events. Without it, less can be concluded from them. */
  readonly recorded?: Policy | undefined
  readonly policyTester: (policy: Policy, options?: PolicyTesterOptions) => PolicyTester
}

export type Predictor = ReturnType<typeof createPredictor>

/** A possible caller. Null: without a credential. */
type Caller = (Grants & { readonly isKey?: boolean }) | null

interface Outcome {
  readonly route: string | null
  /** The host pattern of the route. */
  readonly host: string | undefined
  /** `pass`: all replayed stages pass. */
  readonly kind: 'pass' | 'deny' | 'unknown'
  readonly reason: string
}

const REPLAYED =
  /^(?:not_found|method_not_allowed|missing_token|permission_missing:.*|ambiguous_path:reads_as .*)$/
const BEFORE_CALLER = /^(?:not_found|method_not_allowed|ambiguous_path:.*)$/
/** Reasons of stages after the permission. */
const AFTER_PERMISSION =
  /^(?:relation_missing|relation_unknown|call_refused|signature_matched|invalid_input|unsupported_media_type)(?::|$)/
const RELATION = /^relation_(?:missing|unknown):/
/** Reasons for a caller without a proof of possession, which no sample request has. */
const PROOF = /^(?:missing_token|invalid_dpop_proof:.*)$/
/** Reasons that earlier requests of a replay can cause. They need a new state. */
const STATEFUL = /^(?:rate_limited|banned)(?::|$)/

const MAX_KNOWN = 100_000
/** After these requests a tester is replaced, because it keeps the tokens of all callers. */
const MAX_REQUESTS = 5_000

export function createPredictor({ proposed, recorded, policyTester }: ReplayOptions) {
  const known = new Map<string, Prediction>()
  const now = createDecider(proposed, policyTester)
  const then = recorded && createDecider(recorded, policyTester)
  const policies = recorded === undefined ? [proposed] : [recorded, proposed]
  const allRoutes = policies.flatMap(({ routes }) => routes)
  const roles = [...new Set(policies.flatMap(({ roles }) => [...roles.keys()]))]
  const newWords = wordsOnlyInOne(policies)

  /** Returns callers that stand for every caller that may have sent the request. */
  function callersOf(
    event: RecordedEvent,
    grants: Grants | undefined,
    near: readonly PolicyRoute[],
  ): readonly Caller[] {
    const { actor, reason, address } = event
    const isKnown = actor.subject !== null
    if (isKnown && grants !== undefined)
      return grants.scopes.length === 0 ? [grants] : [grants, { ...grants, isKey: true }]
    const isAnonymous = !isKnown && (reason === 'missing_token' || event.decision === 'allow')
    if (isAnonymous && address !== ERASED_ADDRESS) return [null]
    const rows = near.filter(({ method }) => method === methodOf(event.method))
    const names = new Set([...rows.flatMap(({ permission }) => permission ?? []), ...newWords])
    const scopes = [...names]
    const bundles = [[], ...roles.map((role) => [role]), roles]
    return [
      ...(isKnown ? [] : [null]),
      ...bundles.map((held) => ({ roles: held, scopes: [] })),
      ...scopes.flatMap((scope) => [[], roles].map((held) => ({ roles: held, scopes: [scope] }))),
      { roles: [], scopes },
    ]
  }

  async function predictAnew(
    event: RecordedEvent,
    grants: Grants | undefined,
  ): Promise<Prediction> {
    const { route, method, host } = event
    if (route === null) return unknown('the event has no route')
    if (!isPathPattern(route)) return unknown('the route of the event was shortened')
    if (host !== undefined && !isHostPattern(host))
      return unknown('the host of the event is not a host pattern')
    if (event.reason.startsWith('ambiguous_path:')) return unknown('the spelling of the path')
    if (method === 'OPTIONS') return unknown('a preflight request')
    const near = overlapping(route, allRoutes)
    const places = placesOf({ path: route, host }, near)
    if (places === undefined) return unknown('no sample path for a regular expression')
    const callers = callersOf(event, grants, near)
    const found = new Map<string, Prediction>()
    for (const place of places) {
      for (const caller of callers) {
        const was = await then?.(method, place, caller)
        if (was !== undefined && !isConsistent(was, event)) continue
        const prediction = conclude(event, was, await now(method, place, caller))
        found.set(JSON.stringify(prediction), prediction)
      }
    }
    return together([...found.values()], grants === undefined && callers.length > 1)
  }

  function conclude(event: RecordedEvent, was: Outcome | undefined, is: Outcome): Prediction {
    const { reason } = event
    const isReplayed = REPLAYED.test(reason)
    if (is.kind === 'unknown') return unknown(is.reason)
    if (is.kind === 'deny') {
      if (reason === 'missing_token' && !BEFORE_CALLER.test(is.reason) && mayNeedProof(event))
        return unknown('a proof of possession')
      const isFirst =
        BEFORE_CALLER.test(is.reason) ||
        isReplayed ||
        event.decision === 'allow' ||
        AFTER_PERMISSION.test(reason)
      return { decision: 'deny', reason: isFirst ? is.reason : null }
    }
    if (reason === 'missing_token' && mayNeedProof(event)) return unknown('a proof of possession')
    const isRelation = RELATION.test(reason)
    if (!isReplayed && !isRelation && event.decision !== 'allow')
      return unknown(`stage that refused: ${reason.split(':')[0]}`)
    const relation = relationIn(proposed, event.method, is)
    if (relation === undefined) return { decision: 'allow', reason: 'ok' }
    const isSameRelation =
      was?.kind === 'pass' &&
      recorded !== undefined &&
      isSame(relationIn(recorded, event.method, was), relation)
    if (!isSameRelation) return unknown('a relation')
    return isRelation ? { decision: 'deny', reason } : { decision: 'allow', reason: 'ok' }
  }

  /** Without a proof, an authenticated caller is recorded as one without a token. */
  function mayNeedProof({ method, route, ...event }: RecordedEvent): boolean {
    if (recorded === undefined || route === null) return true
    const rows = rowsOf(recorded, method, route)
    return rows.some(({ dpop, host }) => dpop && (!hasHost(event) || host === event.host))
  }

  return {
    /** Returns the decision at once if an equal event was decided before. */
    predict(event: RecordedEvent, grants: Grants | undefined): Prediction | Promise<Prediction> {
      const { method, route, host, decision, reason, actor, address } = event
      const isErased = address === ERASED_ADDRESS
      const caller = actor.subject !== null && (grants ?? 'unknown')
      const key = JSON.stringify([
        ...[method, route, host, hasHost(event), decision, reason, isErased],
        caller,
      ])
      const before = known.get(key)
      if (before !== undefined) return before
      return predictAnew(event, grants).then((prediction) => {
        if (known.size >= MAX_KNOWN) known.clear()
        known.set(key, prediction)
        return prediction
      })
    },
  }
}

const unknown = (why: string): Prediction => ({ decision: 'unknown', why })

/**
 * Reports whether the host of an event is the one of its route. Events of earlier versions have neither host nor
 * origin, so the route of such an event may have any host.
 */
const hasHost = ({ host, origin }: Pick<RecordedEvent, 'host' | 'origin'>): boolean =>
  host !== undefined || origin !== undefined

/** Reports whether a request with this outcome could have caused the event. */
function isConsistent(was: Outcome, event: RecordedEvent): boolean {
  const { route, reason, decision } = event
  if (was.route !== route) return false
  if (hasHost(event) && was.host !== event.host) return false
  if (was.kind === 'unknown') return true
  if (REPLAYED.test(reason)) return was.kind === 'deny' && was.reason === reason
  const hasPassed = decision === 'allow' || AFTER_PERMISSION.test(reason)
  return !hasPassed || was.kind === 'pass'
}

function together(found: readonly Prediction[], isUnknownCaller: boolean): Prediction {
  const [first] = found
  if (first === undefined) return unknown('another policy recorded the event')
  if (found.length === 1) return first
  const undecided = found.find(({ decision }) => decision === 'unknown')
  if (undecided !== undefined && !isUnknownCaller) return undecided
  if (found.every(({ decision }) => decision === 'deny')) return { decision: 'deny', reason: null }
  return unknown(
    isUnknownCaller
      ? 'the caller, or its roles'
      : 'the path, the host, or the kind of the credential',
  )
}

function relationIn(policy: Policy, method: string, { route, host }: Outcome) {
  const rows = route === null ? [] : rowsOf(policy, method, route)
  const row = rows.find((one) => one.host === host)
  return row?.relation && { query: queryOf(row), mode: row.relation.mode }
}

/**
 * Returns the permissions that only one of the policies names. A scope narrows the roles of a caller
 * only if it names a permission of the policy.
 */
function wordsOnlyInOne(policies: readonly Policy[]): readonly string[] {
  const vocabularies = policies.map(
    ({ roles, routes }) =>
      new Set([...roles.values(), routes.flatMap(({ permission }) => permission ?? [])].flat()),
  )
  const all = new Set(vocabularies.flatMap((words) => [...words]))
  return [...all].filter((word) => word !== '*' && !vocabularies.every((set) => set.has(word)))
}

/** Creates the function that sends a request through the pipeline of a policy. */
function createDecider(policy: Policy, policyTester: ReplayOptions['policyTester']) {
  const [issuer] = policy.tenantIssuers ?? []
  const outcomes = new Map<string, Outcome>()
  let tester: PolicyTester | undefined
  let sent = 0

  function renewed(): PolicyTester {
    sent = 0
    return policyTester(policy, {
      ...(issuer !== undefined && { issuers: [issuer] }),
      relations: () => true,
    })
  }

  async function send(method: string, place: Place, caller: Caller): Promise<Outcome> {
    if (tester === undefined || sent >= MAX_REQUESTS) tester = renewed()
    sent += 1
    // Limits and bans count each request for another caller.
    const sub = `caller-${sent}`
    const address = `10.${(sent >> 16) & 255}.${(sent >> 8) & 255}.${sent & 255}`
    const { roles = [], scopes: scope = [], isKey = false } = caller ?? {}
    const credential =
      caller === null
        ? {}
        : isKey
          ? { token: await tester.apiKey({ sub, roles, scope }) }
          : { as: { sub, client: sub, roles, ...(scope.length > 0 && { scope }) } }
    const decision = await tester.request(`${method} ${place.path}`, {
      ...credential,
      address,
      ...(place.host !== undefined && { host: place.host }),
    })
    const { reason, route, host } = decision
    if (decision.allowed || AFTER_PERMISSION.test(reason))
      return { route, host, kind: 'pass', reason }
    if (PROOF.test(reason) && caller !== null)
      return { route, host, kind: 'unknown', reason: 'a proof of possession' }
    if (REPLAYED.test(reason)) return { route, host, kind: 'deny', reason }
    return { route, host, kind: 'unknown', reason: `stage of the proposed policy: ${reason}` }
  }

  return async function decide(method: string, place: Place, caller: Caller): Promise<Outcome> {
    const key = JSON.stringify([method, place, caller])
    const known = outcomes.get(key)
    if (known !== undefined) return known
    let outcome = await send(method, place, caller)
    if (outcome.kind === 'unknown' && STATEFUL.test(outcome.reason.split(': ').at(-1) ?? '')) {
      tester = renewed()
      outcome = await send(method, place, caller)
    }
    if (outcomes.size >= MAX_KNOWN) outcomes.clear()
    outcomes.set(key, outcome)
    return outcome
  }
}
