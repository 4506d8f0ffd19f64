/** Callers with valid tokens that an operator revokes during the load. */
import { addressOf } from '../chaos/callers.ts'
import { type Claims, type Issuer, signToken } from '../chaos/issuers.ts'
import type { Operator, RevocationKind } from './operator.ts'
import type { Sender } from './sender.ts'
import { badShot, goodShot, type Shot } from './sender.ts'

/** Number of revoked callers that stay in use, far longer than any cache entry. */
const MAX_KEPT = 200
/** Separate from the addresses of other callers. */
const FIRST_ADDRESS = 0x8000_0000

type End = RevocationKind | 'ban'
const ENDS: readonly End[] = ['token', 'session', 'subject', 'tenant', 'ban']

export type Condemned = ReturnType<typeof createCondemned>

export interface CondemnedOptions {
  readonly sender: Sender
  readonly operator: Operator
  readonly issuer: Issuer
  random(): number
}

export function createCondemned({ sender, operator, issuer, random }: CondemnedOptions) {
  const ended: { readonly credential: string; readonly end: End }[] = []
  let count = 0
  let tries = 0

  return {
    /** Creates a caller, checks that it is admitted, and revokes it. */
    async condemn(): Promise<void> {
      const name = `condemned-${count}`
      const end = ENDS[count % ENDS.length] as End
      const address = addressOf(FIRST_ADDRESS + count++)
      const claims: Claims = {
        sub: name,
        jti: `jti-${name}`,
        sid: `sid-${name}`,
        tenant: `of-${name}`,
      }
      const credential = await signToken(issuer, claims)
      for (const gateway of [0, 1]) {
        const request = goodShot(
          'before its end',
          { credential, address },
          { path: '/orders', subject: name },
        )
        await sender.send(request, { gateway })
      }
      const values = {
        token: claims.jti,
        session: claims.sid,
        subject: name,
        tenant: claims.tenant,
      }
      const isDone =
        end === 'ban'
          ? await operator.ban(name)
          : await operator.revoke(end, values[end] ?? '', issuer.issuer)
      if (!isDone) return
      ended.push({ credential, end })
      if (ended.length > MAX_KEPT) ended.shift()
    },
    /** Returns a request of a revoked caller, or undefined if there is none. */
    shot(): Shot | undefined {
      const one = ended[Math.floor(random() * ended.length)]
      if (one === undefined) return undefined
      const caller = {
        credential: one.credential,
        address: addressOf(FIRST_ADDRESS + 0x10_0000 + tries++),
      }
      return one.end === 'ban'
        ? badShot('banned', [403], caller)
        : badShot(`revoked by ${one.end}`, [401], caller)
    },
    size: () => ended.length,
  }
}
