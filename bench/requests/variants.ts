/** What the Worker of the scenarios about requests can be, each under a first segment of its own. */

/**
 * `passthrough` proxies and nothing else, `platform` does so with the pipeline's calls to the platform,
 * `gateway` is the whole pipeline. `other` is that before an origin of the scenario's own, and
 * `crowded` the same with room for one request. `admit` and `authorize` are the pipeline up to there,
 * `validation` is `authenticate` by itself, and `checks` repeats permission checks. `unasked` is the
 * whole pipeline with an admission that asks nobody; `leased` the one whose policy takes units ahead;
 * `far` and `leased-far` are over a Redis of the scenario's.
 * `related` has routes that demand a relation; `related-cached` uses decisions again, and
 * `related-leased` takes units ahead besides.
 */
export const VARIANTS = [
  'passthrough',
  'platform',
  'gateway',
  'other',
  'crowded',
  'admit',
  'authorize',
  'validation',
  'checks',
  'unasked',
  'leased',
  'far',
  'leased-far',
  'related',
  'related-cached',
  'related-leased',
] as const
export type Variant = (typeof VARIANTS)[number]

/** What `leased` takes ahead of every limit, and how old what it knows of revocations may be. */
export const LEASE = { max: 100_000, ttlMs: 1_000 } as const
export const MAX_STALENESS_MS = 1_000

/** Where an order is read by whoever has a relation to it, and where by whoever has the permission. */
export const RELATED = '/related'
export const UNRELATED = '/unrelated'
/** How old the decisions of `related-cached` may be: as old as a policy may say; and how many are kept. */
export const DECISION_MAX_STALENESS_MS = 60_000
export const DECISIONS_KEPT = 100_000

/** Where the `validation` variant tells what its memory of tokens has counted. */
export const TALLY_PATH = '/tally'
/** Where it validates. */
export const WHO_PATH = '/who'

/** Characters of each of the notes of a payload, at most, and how many notes there may be. */
export const PAYLOAD_NOTE_CHARACTERS = 200
export const PAYLOAD_NOTES = 100

/** From here bad credentials are not counted as failures or violations: each is looked at. */
export const EXEMPT_ADDRESS = '203.0.113.7'
