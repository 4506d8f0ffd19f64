/** The traffic mix: the percentage of each kind of request. */
import { addressOf, type Pool } from '../chaos/callers.ts'
import { type Issuer, signToken } from '../chaos/issuers.ts'
import type { Condemned } from './condemned.ts'
import { badShot, goodShot, type Shot } from './sender.ts'

export interface MixOptions {
  readonly inline: Pool
  readonly remote: Pool
  readonly opaque: Pool
  readonly apiKeys: Pool
  readonly condemned: Condemned
  readonly issuers: { readonly inline: Issuer; readonly remote: Issuer; readonly stranger: Issuer }
  /** Returns a random number in [0, 1). */
  random(): number
}

/** Percent of requests. */
export const SHARES = {
  inline: 31,
  remote: 12,
  opaque: 8,
  apiKey: 8,
  create: 6,
  spoofed: 2,
  ping: 4,
  noToken: 3,
  garbage: 2,
  forged: 2,
  expired: 2,
  otherAudience: 1,
  unknownKey: 1,
  condemned: 5,
  exhausted: 2,
  forbidden: 3,
  badQuery: 2,
  badBody: 2,
  badType: 1,
  tooLarge: 1,
  ambiguous: 1,
  unknownRoute: 1,
} as const
export type ShotKind = keyof typeof SHARES

/** Percent of requests from callers with tokens of the configured issuer. */
export const INLINE_SHARE =
  SHARES.inline +
  SHARES.create +
  SHARES.spoofed +
  SHARES.forbidden +
  SHARES.badQuery +
  SHARES.badBody +
  SHARES.badType +
  SHARES.tooLarge

const ORDER = '0190f8a0-7c3a-7000-8000-000000000001'
const NEW_ORDER = { item: 'lamp', quantity: 2, position: [120.5, -40, 3.25] }
const MAX_BODY_BYTES = 65_536
const PINGERS = 500
/** Addresses that are used only once. */
const FIRST_STRANGER = 0x1000_0000
/** How long one caller continues beyond its limit. */
const GREED_MS = 90_000

const AMBIGUOUS = ['//orders', '/a/..%2forders', '/orders%00', '/%2561dmin/x', '/orders/..;/admin']
const SPOOFED = { 'x-auth-subject': 'root', 'x-auth-roles': 'admin', X_Auth_Subject: 'root' }

export function createMix(options: MixOptions): (kind: ShotKind) => Promise<Shot> {
  const { inline, remote, opaque, apiKeys, condemned, issuers, random } = options
  let strangers = 0
  const stranger = () => ({ address: addressOf(FIRST_STRANGER + strangers++) })
  const one = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)] as Item

  async function by(pool: Pool) {
    const { subject, address, credential } = pool.next()
    return { subject, caller: { address, credential: await credential() } }
  }
  async function read(kind: string, pool: Pool, path: string): Promise<Shot> {
    const { subject, caller } = await by(pool)
    return goodShot(kind, caller, { path, subject })
  }
  async function bad(kind: string, credential: string | Promise<string>, right = [401]) {
    return badShot(kind, right, { ...stranger(), credential: await credential })
  }

  const kinds: Readonly<Record<ShotKind, () => Promise<Shot> | Shot>> = {
    inline: () => read('read, JWT of known key', inline, '/orders?limit=20'),
    remote: () => read('read, JWT of fetched key', remote, `/orders/${ORDER}`),
    opaque: () => read('read, opaque token', opaque, '/orders'),
    apiKey: () => read('read, API key', apiKeys, `/orders/${ORDER}`),
    async create() {
      const { subject, caller } = await by(inline)
      return goodShot('create', caller, {
        method: 'POST',
        path: '/orders',
        body: NEW_ORDER,
        subject,
      })
    },
    async spoofed() {
      const shot = await read('spoofed identity', inline, '/orders')
      return {
        ...shot,
        outgoing: { ...shot.outgoing, headers: { ...shot.outgoing.headers, ...SPOOFED } },
      }
    },
    ping: () =>
      goodShot(
        'anonymous',
        { address: addressOf(FIRST_STRANGER - 1 - Math.floor(random() * PINGERS)) },
        { path: '/public/ping', subject: '' },
      ),
    noToken: () => badShot('no token', [401], stranger()),
    garbage: () => bad('garbage', `${'x'.repeat(20)}.${'y'.repeat(40)}.${'z'.repeat(86)}`),
    forged: () =>
      bad('forged', signToken(issuers.inline, { sub: 'mallory' }, { key: issuers.stranger.key })),
    expired: () => bad('expired', signToken(issuers.inline, { sub: 'late', ageSeconds: 1_000 })),
    otherAudience: () =>
      bad('other audience', signToken(issuers.inline, { sub: 'lost', aud: 'https://other.test' })),
    // 503 if the gateway currently cannot fetch the issuer's keys.
    unknownKey: () =>
      bad(
        'unknown key',
        signToken(
          issuers.remote,
          { sub: 'new' },
          { kid: `new-${strangers}`, key: issuers.stranger.key },
        ),
        [401, 503],
      ),
    condemned: () => condemned.shot() ?? kinds.garbage(),
    async exhausted() {
      const subject = `greedy-${Math.floor(Date.now() / GREED_MS)}`
      const credential = await signToken(issuers.inline, { sub: subject })
      return goodShot(
        'beyond the limit',
        { ...stranger(), credential },
        {
          path: '/orders',
          subject,
          // A caller that continues after the refusal is banned.
          right: [200, 429, 403],
        },
      )
    },
    async forbidden() {
      const { caller } = await by(inline)
      return badShot('forbidden', [403], caller, { method: 'DELETE', path: `/orders/${ORDER}` })
    },
    async badQuery() {
      const { caller } = await by(inline)
      return badShot('bad query', [422], caller, {
        path: one(['/orders?limit=0', '/orders/no-id']),
      })
    },
    async badBody() {
      const { caller } = await by(inline)
      const body = one([
        { item: 'lamp' },
        { ...NEW_ORDER, quantity: -1 },
        { ...NEW_ORDER, admin: true },
      ])
      return badShot('bad body', [422], caller, { method: 'POST', body })
    },
    async badType() {
      const { caller } = await by(inline)
      return badShot('bad type', [415], caller, {
        method: 'POST',
        body: 'item=lamp',
        type: 'text/plain',
      })
    },
    async tooLarge() {
      const { caller } = await by(inline)
      const body = { ...NEW_ORDER, item: 'x'.repeat(MAX_BODY_BYTES) }
      return badShot('too large', [413], caller, { method: 'POST', body })
    },
    ambiguous: () => badShot('ambiguous path', [400], stranger(), { path: one(AMBIGUOUS) }),
    unknownRoute: () => badShot('unknown route', [404], stranger(), { path: '/nowhere' }),
  }
  return async (kind) => kinds[kind]()
}
