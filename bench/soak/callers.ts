/** The honest callers of the soak, each with a credential, an address and a budget of its own. */
import { type Issuer, signToken } from './issuers.ts'

/** Of the shipped policy's limit of 100 a minute; the rest is for uneven arrivals. */
const REQUESTS_PER_MINUTE = 40
/** Tokens are replaced while they are good, as clients do; so caches have something to forget. */
const RENEWAL_MS = 120_000

export interface Caller {
  readonly subject: string
  readonly address: string
  credential(): Promise<string>
}

/** Deals callers out one after the other, so that none comes more often than another. */
export interface Pool {
  next(): Caller
}

/** How many callers it takes for so many requests a second to stay below everyone's limit. */
export function poolSize(requestsPerSecond: number): number {
  return Math.max(2, Math.ceil((requestsPerSecond * 60) / REQUESTS_PER_MINUTE))
}

export function createPool(callers: readonly Caller[]): Pool {
  let turn = 0
  return { next: () => callers[turn++ % callers.length] as Caller }
}

/** A caller who gets a new token every two minutes. */
export function tokenCaller(
  issuer: Issuer,
  subject: string,
  { address, roles }: { readonly address: string; readonly roles: readonly string[] },
): Caller {
  let token: Promise<string> | undefined
  let renewAtMs = 0
  return {
    subject,
    address,
    credential() {
      const nowMs = Date.now()
      if (token === undefined || nowMs >= renewAtMs) {
        renewAtMs = nowMs + RENEWAL_MS * (0.5 + Math.random())
        token = signToken(issuer, { sub: subject, roles })
      }
      return token
    },
  }
}

/** A caller whose credential stays what it is. */
export function fixedCaller(subject: string, credential: string, address: string): Caller {
  const promise = Promise.resolve(credential)
  return { subject, address, credential: () => promise }
}

/** Another IPv6 network for each number: limits and bans count by /64. */
export function addressOf(number: number): string {
  const high = Math.floor(number / 0x1_0000) % 0x1_0000
  return `2001:db8:${high.toString(16)}:${(number % 0x1_0000).toString(16)}::1`
}
