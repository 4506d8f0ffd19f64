/**
 * Authorization requests that wait in the store: pushed by a client (RFC 9126), or for the decision
 * of a user. A handle of 256 unpredictable bits identifies each.
 */
import { base64url } from 'jose'
import * as z from 'zod/mini'
import { credentialHash } from '../../access/tokens/reference.ts'
import type { RandomBytes } from '../../crypto/random.ts'
import { integer } from '../../validators/schema-parts.ts'
import { LOGIN_SECONDS } from '../sign-in/login.ts'

/** How long a user may read the consent page. */
export const DECISION_SECONDS = 600
/** `expires_in` of a pushed request: how long the client may take to send the browser. */
export const PUSHED_SECONDS = 60
/** How long the browser may use a pushed request that it has opened: the time for a login. */
export const OPENED_SECONDS = LOGIN_SECONDS
/** RFC 9126 section 2.2. */
export const REQUEST_URI_PREFIX = 'urn:ietf:params:oauth:request_uri:'

const HANDLE_BYTES = 32
const HANDLE = /^[\w-]{43}$/
const names = z.readonly(z.array(z.string()))

/** What the consent page shows, and what the user allows with it. */
export const authorizationSchema = z.strictObject({
  kind: z.literal('undecided'),
  /** SHA-256 that identifies the browser session of the user. */
  browserSession: z.string(),
  client: z.string(),
  name: z.string(),
  redirectUri: z.string(),
  /** Whether the request does not name it. */
  isImplied: z.optional(z.boolean()),
  state: z.optional(z.string()),
  challenge: z.string(),
  scopes: names,
  audiences: names,
  refresh: z.boolean(),
  dpopKey: z.optional(z.string()),
  /** Whether the client has demanded that its tokens are bound to a key. */
  dpopBound: z.optional(z.boolean()),
  /** The hash of the pushed request's handle. */
  pushed: z.optional(z.string()),
})

export type Authorization = Readonly<z.output<typeof authorizationSchema>>

export const pushedSchema = z.strictObject({
  /** `opened`: a browser has used the `request_uri`, and has the time of a login. */
  kind: z.enum(['pushed', 'opened']),
  client: z.string(),
  /** Form-encoded. */
  parameters: z.string(),
  /**
   * The earliest accepted time of the login, in seconds since the epoch. Set when the browser is sent to
   * a new login. It returns from this login with another handle.
   */
  loginAfterSeconds: z.optional(integer()),
  /** The hash of the handle of the request before that login, if the client has pushed it. */
  pushed: z.optional(z.string()),
})

export type PushedRequest = Readonly<z.output<typeof pushedSchema>>

export type WaitingRequest = Authorization | PushedRequest

/** Port: requests by the hash of their handle. Throws `Unavailable` if the store fails. */
export interface WaitingRequests {
  put(handleHash: string, request: WaitingRequest, ttlSeconds: number): Promise<void>
  /** Replaces a request, if it is still there. Returns whether it was. */
  replace(handleHash: string, request: WaitingRequest, ttlSeconds: number): Promise<boolean>
  find(handleHash: string): Promise<WaitingRequest | undefined>
  /** Returns a request and removes it in one step, so that it is used once. */
  take(handleHash: string): Promise<WaitingRequest | undefined>
}

export async function newHandle(random: RandomBytes) {
  const text = base64url.encode(random(HANDLE_BYTES))
  return { text, hash: await credentialHash(text) }
}

/** Returns the hash of a handle. Undefined for a text of another form. */
export async function handleHash(text: string | undefined): Promise<string | undefined> {
  return text !== undefined && HANDLE.test(text) ? credentialHash(text) : undefined
}
