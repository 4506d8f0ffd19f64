/** The regular callers of the soak. Each has its own credential, address and limit. */
import { type Issuer, signToken } from './issuers.ts'

/** The shipped policy allows 100 a minute. The rest is a reserve for uneven arrivals. */
const REQUESTS_PER_MINUTE = 40
/** Tokens are replaced before they expire, as clients do, so that caches must evict entries. */
const RENEWAL_MS = 120_000

export interface Caller {
  readonly subject: string
  readonly address: string
  credential(): Promise<string>
}

/** Returns callers in turn, so that all are used equally often. */
export interface Pool {
  next(): Caller
}

/** Returns the number of callers needed to stay below every caller's limit at this rate. */
export function poolSize(requestsPerSecond: number): number {
  return Math.max(2, Math.ceil((requestsPerSecond * 60) / REQUESTS_PER_MINUTE))
}

export function createPool(callers: readonly Caller[]): Pool {
  let turn = 0
  return { next: () => callers[turn++ % callers.length] as Caller }
}

/** Creates a caller with a new token every two minutes. */
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

export function fixedCaller(subject: string, credential: string, address: string): Caller {
  const promise = Promise.resolve(credential)
  return { subject, address, credential: () => promise }
}

/** Returns a different IPv6 network for each number: limits and bans count by /64. */
export function addressOf(number: number): string {
  const high = Math.floor(number / 0x1_0000) % 0x1_0000
  return `2001:db8:${high.toString(16)}:${(number % 0x1_0000).toString(16)}::1`
}
