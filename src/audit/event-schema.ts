/** The schema of an audit event. Only code that reads events imports it. */

import * as z from 'zod/mini'
import { integer } from '../validators/schema-parts.ts'

export const DECISIONS = ['allow', 'deny', 'error'] as const

const limitSchema = z.strictObject({
  name: z.string(),
  limit: integer(),
  remaining: integer().check(z.minimum(0)),
  /** Present and true if the limit could not be counted and allowed the request. */
  unavailable: z.optional(z.literal(true)),
})

/**
 * One decision. An event contains no credentials: a token is represented by the SHA-256 of its
 * `iss` and `jti`. Times are UTC (RFC 3339), durations are in milliseconds.
 */
export const auditEventSchema = z.strictObject({
  /** UUIDv7. It sorts by time and is the key that makes delivery idempotent. */
  id: z.uuid(),
  time: z.iso.datetime(),
  requestId: z.string(),
  /** W3C trace id, 32 hex digits. */
  traceId: z.string(),
  actor: z.strictObject({
    issuer: z.nullable(z.string()),
    subject: z.nullable(z.string()),
    client: z.nullable(z.string()),
    tenant: z.nullable(z.string()),
    tokenIdHash: z.nullable(z.string()),
    /** The id of the caller's API key. Absent for all other credentials. */
    key: z.optional(z.string()),
  }),
  method: z.string(),
  /** The route's pattern (`/orders/:id`), or null if no route matched. Never the raw path. */
  route: z.nullable(z.string()),
  /** The host pattern of the route (`*.example.com`), if it has one. Never the host of the request. */
  host: z.optional(z.string()),
  /**
   * The name of the origin that the route has in the policy, or of the canary that the caller was sent
   * to. Absent for the origin of `ORIGIN_URL`.
   */
  origin: z.optional(z.string()),
  decision: z.enum(DECISIONS),
  /** `ok`, or the precise reason: `token_rejected:exp`, `redis:timeout`. */
  reason: z.string(),
  status: integer(),
  limits: z.array(limitSchema),
  /** Duration of each stage alone, in milliseconds. */
  durationsMs: z.record(z.string(), z.number()),
  /** As limits use it: IPv6 as its /64; `unknown` if the request had none. */
  address: z.string(),
  /** The Cloudflare data centre (`request.cf.colo`). */
  colo: z.nullable(z.string()),
  /** The reasons for which rules in observe mode would have refused the request. */
  observed: z.optional(z.array(z.string()).check(z.minLength(1))),
  /**
   * What the check of a refused token found and expected. `verified`: the signature was valid.
   * Otherwise `seen` is any text that the sender wrote.
   */
  rejected: z.optional(
    z.strictObject({ seen: z.string(), expected: z.string(), verified: z.boolean() }),
  ),
  /** A call of an MCP server: its method, and its tool, prompt or resource. Never arguments.
   * Each has at most 256 characters. */
  call: z.optional(z.strictObject({ method: z.string(), name: z.optional(z.string()) })),
  /**
   * What an identified caller had, for `explain` and `replay`: its roles and scopes, the plan of its limits,
   * and the object and relation that the route required (`document:42#viewer`).
   */
  grants: z.optional(
    z.strictObject({
      roles: z.array(z.string()),
      scopes: z.array(z.string()),
      plan: z.optional(z.string()),
      relation: z.optional(z.string()),
    }),
  ),
  /** What features of the policy recorded, by the name of the field. At most 16, of at most 256 characters each. */
  fields: z.optional(z.record(z.string(), z.string())),
  /** A change by an operator: the action, and its target (an id, never a secret). */
  change: z.optional(z.strictObject({ action: z.string(), target: z.string() })),
  /** Present only on `audit_lost`: the maximum number of events that were not delivered. */
  lost: z.optional(integer().check(z.minimum(1))),
})
