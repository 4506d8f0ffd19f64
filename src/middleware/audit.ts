/** The `audit` stage: records one audit event for each decision. */
import type { Context, MiddlewareHandler, Next } from 'hono'
import type { RateLimit } from '../access/admission/limit.ts'
import type { Principal } from '../access/principal.ts'
import {
  type AuditCall,
  type AuditChange,
  type AuditEvent,
  type AuditGrants,
  type AuditSink,
  NO_TRACE_ID,
} from '../audit/event.ts'
import { decisionOf, reasonOf, rejectionOf, STREAM_ENDED } from '../audit/reason.ts'
import { createTimeline, isoTime, type Timeline } from '../audit/timeline.ts'
import { logKind, type ProblemError } from '../errors.ts'
import { UNKNOWN_ADDRESS } from '../http/address-list.ts'
import type { WaitUntil } from '../isolate/after-response.ts'
import { uuidV7 } from '../isolate/random-ids.ts'
import { type GatewayVariables, type TimelineVariables, waitUntilOf } from './context.ts'

/** Set by the stage that reads a call of an MCP server. */
export interface CallVariables {
  'portcullis.call': AuditCall
}

/** Set by an operators' call after it has changed something. */
export interface ChangeVariables {
  'portcullis.change': AuditChange
}

type AuditEnvironment = {
  Variables: Partial<GatewayVariables & CallVariables & ChangeVariables> & TimelineVariables
}

type AuditContext = Context<AuditEnvironment>

export interface AuditOptions {
  readonly sink: AuditSink
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
  /** Returns a UUIDv7. Default: a random one. */
  readonly newId?: (nowMs: number) => string
  /** Receives each event with the path of its request as well, after the sink. Default: nothing. */
  readonly decided?: ((event: AuditEvent, path: string) => void) | undefined
}

/**
 * Records one audit event per request, and sets `timeline`. Comes right after `requestId`, around
 * all stages that decide. Never changes the response, and delays it only if the sink returns a promise.
 * If the client disconnects, the rest
 * of the pipeline runs in `waitUntil` (up to 30 s), so that the event is recorded: a handler that
 * calls an origin must watch `request.signal` to stop early.
 *
 * Does NOT read bodies, headers or queries. Of a refused token, an event contains at most the `typ`,
 * `alg`, `iss` or `aud` that was refused; nothing else of a caller's token or input.
 *
 * @example
 * ```ts
 * const sink = batchingAuditSink({ transport: createAuditQueue({ queue: env.AUDIT_QUEUE }) })
 * app.use(requestId(), audit({ sink }))
 * ```
 */
export const audit = (options: AuditOptions): MiddlewareHandler<AuditEnvironment> =>
  createAudit(options).stage

export interface Audit {
  /** See {@link audit}. */
  readonly stage: MiddlewareHandler<AuditEnvironment>
  /** Records that an open response or WebSocket was ended before its time, in an event of its own. */
  recordEnd(c: Context, error: ProblemError): void
}

/** Creates the stage, and what records later events of its requests. */
export function createAudit({
  sink,
  now = () => Date.now(),
  newId = uuidV7,
  decided,
}: AuditOptions): Audit {
  const dataCentreOf = createDataCentre()

  function createEvent(
    c: Context<AuditEnvironment>,
    timeline: Timeline,
    status: number,
    thrown: unknown,
  ): AuditEvent {
    const nowMs = now()
    const id = newId(nowMs)
    const principal = c.get('portcullis.principal')
    const change = c.get('portcullis.change')
    const observed = c.get('portcullis.observed')
    const rejected = rejectionOf(thrown)
    const route = c.get('portcullis.route')
    const origin = c.get('portcullis.origin') ?? route?.origin
    const call = c.get('portcullis.call')
    const fields = c.get('portcullis.fields')
    const grants = principal == null ? undefined : describeGrants(c, principal)
    return {
      id,
      time: isoTime(nowMs),
      requestId: c.get('portcullis.requestId') ?? id,
      traceId: c.get('portcullis.trace')?.traceId ?? NO_TRACE_ID,
      actor: {
        issuer: principal?.issuer ?? null,
        subject: principal?.subject ?? null,
        client: principal?.client ?? null,
        tenant: principal?.tenant ?? null,
        tokenIdHash: principal?.tokenIdHash ?? null,
        key: principal?.key,
      },
      method: c.req.method,
      route: route?.path ?? null,
      decision: decisionOf(thrown, timeline.current()),
      reason: reasonOf(thrown, timeline.current()),
      status,
      limits: describeLimits(c),
      durationsMs: timeline.durations(nowMs),
      address: c.get('portcullis.clientAddress') ?? UNKNOWN_ADDRESS,
      colo: dataCentreOf(c.req.raw),
      // JSON has no members that are undefined.
      host: route?.host,
      origin,
      observed,
      rejected,
      call,
      grants,
      fields,
      change,
    }
  }

  async function decide(c: Context<AuditEnvironment>, next: Next, waitUntil: WaitUntil) {
    const timeline = createTimeline(now)
    c.set('portcullis.timeline', timeline)
    let status = 500
    let thrown: unknown
    try {
      await next()
      // Hono turns an error into a response where it was thrown, and keeps the error here.
      thrown = c.error
      status = c.res.status
    } catch (error) {
      thrown = error
      throw error
    } finally {
      try {
        const event = createEvent(c, timeline, status, thrown)
        const recorded = sink.record(event, waitUntil)
        decided?.(event, c.req.path)
        if (recorded !== undefined) await recorded
      } catch (error) {
        logKind('audit sink', error)
      }
    }
  }

  return {
    stage: function audit(c, next) {
      const waitUntil = waitUntilOf(c)
      const decided = decide(c, next, waitUntil)
      waitUntil(decided)
      return decided
    },
    recordEnd(c, error) {
      const timeline = c.get('portcullis.timeline') ?? createTimeline(now)
      try {
        const event = createEvent(c as unknown as AuditContext, timeline, c.res.status, error)
        void sink.record({ ...event, reason: STREAM_ENDED + event.reason }, waitUntilOf(c))
      } catch (failure) {
        logKind('audit sink', failure)
      }
    },
  }
}

/** After this number of requests without a data centre, the platform is assumed to have none. */
const DATA_CENTRE_LOOKS = 20

/** Cached, because an isolate never moves and the platform parses `cf` for each request again. */
function createDataCentre(): (request: Request) => string | null {
  let known: string | null = null
  let looks = 0
  return function dataCentreOf(request) {
    if (known !== null || looks >= DATA_CENTRE_LOOKS) return known
    looks += 1
    const colo = request.cf?.colo
    if (typeof colo === 'string') known = colo
    return known
  }
}

function describeLimits(c: Context<AuditEnvironment>): AuditEvent['limits'] {
  const limits: AuditEvent['limits'] = (c.get('portcullis.rateLimits') ?? []).map(
    ({ rule: { name }, limit, remaining }) => ({ name, limit, remaining }),
  )
  for (const name of c.get('portcullis.uncountedLimits') ?? []) {
    const limit = c.get('portcullis.route')?.limits.find((rule) => rule.name === name)?.limit ?? 0
    limits.push({ name, limit, remaining: 0, unavailable: true })
  }
  return limits
}

/** Most tokens have fewer. The rest is counted: `…[+3]`. */
const MAX_GRANTS = 50
const MAX_RELATION_CHARS = 512

function describeGrants(c: Context<AuditEnvironment>, principal: Principal): AuditGrants {
  const grants = { roles: bounded(principal.roles), scopes: bounded(principal.scopes) }
  const plan = findPlan(c.get('portcullis.rateLimits') ?? [], principal)
  const query = c.get('portcullis.relation')?.query
  const hasRelation = query !== undefined && !('code' in query)
  if (plan === undefined && !hasRelation) return grants
  return {
    ...grants,
    ...(plan !== undefined && { plan }),
    ...(hasRelation && {
      relation: `${query.object}#${query.relation}`.slice(0, MAX_RELATION_CHARS),
    }),
  }
}

const bounded = (names: readonly string[]): string[] =>
  names.length <= MAX_GRANTS
    ? (names as string[])
    : [...names.slice(0, MAX_GRANTS), `…[+${names.length - MAX_GRANTS}]`]

const plansOf = ({ rule }: RateLimit) => rule.meter?.plans?.units

/** Returns the only plan that has all limits in force; else the plan that the token names. */
function findPlan(limits: readonly RateLimit[], { plan }: Principal): string | undefined {
  const metered = limits.filter((limit) => plansOf(limit) !== undefined)
  const [first] = metered
  if (first === undefined) return plan
  const names = [...(plansOf(first)?.keys() ?? [])].filter((name) =>
    metered.every((each) => plansOf(each)?.get(name) === each.limit),
  )
  return names.length === 1 ? names[0] : plan
}
