/** Decides what an event changes. Pure. */
import type { SignalAction } from './action.ts'
import type { Named, SignalSubject } from './subject.ts'

/** One change in the store. All times are seconds since the epoch. */
export type SignalEffect =
  /** Refuses everything issued until now. */
  | {
      readonly kind: 'cutoff'
      readonly of: Named & { readonly kind: Exclude<Named['kind'], 'token'> }
    }
  /** Refuses one token. */
  | { readonly kind: 'token'; readonly issuer: string; readonly tokenId: string }
  /** An effect on an account has the time of its event: an earlier one does not replace a later one. */
  | {
      readonly kind: 'ban' | 'lift'
      readonly issuer: string
      readonly subject: string
      readonly atSeconds: number
    }

/** Returns the effects of an action on a subject, whose contacts are resolved. None for `observe`. */
export function effectsOf(
  action: SignalAction,
  { users, sessions, tenants }: SignalSubject,
  atSeconds: number,
): readonly SignalEffect[] {
  const ofAccount = (kind: 'ban' | 'lift') =>
    users.map(({ issuer, value }) => ({ kind, issuer, subject: value, atSeconds }))
  switch (action) {
    case 'revokeSessions':
      return firstWithItems(sessions, users, tenants).map(refusal)
    case 'cutoff':
    case 'stepUp':
      return firstWithItems(users, sessions, tenants).map(refusal)
    case 'ban':
      return [...firstWithItems(users, sessions, tenants).map(refusal), ...ofAccount('ban')]
    case 'liftBan':
      return ofAccount('lift')
    case 'observe':
      return []
    default:
      return action satisfies never
  }
}

function firstWithItems(...lists: readonly (readonly Named[])[]): readonly Named[] {
  return lists.find((list) => list.length > 0) ?? []
}

function refusal({ kind, issuer, value }: Named): SignalEffect {
  return kind === 'token'
    ? { kind, issuer, tokenId: value }
    : { kind: 'cutoff', of: { kind, issuer, value } }
}
