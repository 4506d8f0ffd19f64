/**
 * Changes that an attacker with write access to the database may make to one row of the audit
 * trail.
 */

export interface Tampering {
  readonly name: string
  /** The rows that it touches. The verification must name each of them. */
  readonly seqs: readonly number[]
  readonly statements: readonly string[]
}

/** The columns of a row with a text, except its hashes and the name of its chain. */
export const TEXTS: readonly string[] = [
  ...['subject', 'reason', 'route', 'address', 'decision', 'limits', 'id', 'request_id'],
  ...['issuer', 'client', 'tenant', 'token_id_hash', 'trace_id', 'change', 'observed', 'rejected'],
  ...['host', 'origin', 'method', 'durations_ms', 'colo', 'call', 'api_key', 'grants', 'fields'],
  ...['salt', 'commitment', 'change_salt', 'change_commitment', 'erasure'],
]
const NUMBERS = ['time_ms', 'status', 'v']
/** What an erasure leaves of a caller. */
const ERASED =
  'issuer = NULL, subject = NULL, client = NULL, tenant = NULL, token_id_hash = NULL, ' +
  "request_id = '', trace_id = '', address = 'erased', salt = NULL"
const HASHES = ['hash', 'previous_hash']
const PARKED = -1

const changeAt = (change: string, seq: number) =>
  `UPDATE audit_events SET ${change} WHERE partition = '0' AND seq = ${seq}`
const appendTo = (column: string) => `${column} = coalesce(${column}, '') || 'x'`

/** Returns a change of each text column, each in a row of its own, among the first `last` rows. */
export function eachTextTampering(last: number): Tampering {
  const distance = Math.floor(last / TEXTS.length)
  const seqs = TEXTS.map((_, index) => 1 + index * distance)
  return {
    name: 'change each text',
    seqs,
    statements: TEXTS.map((column, index) => changeAt(appendTo(column), seqs[index] ?? 0)),
  }
}

/**
 * Returns the tampering with the number `turn` of a chain of `last` rows. The kinds take turns, so that a
 * few tamperings cover all of them; rows and columns are random. `random` returns numbers in [0, 1).
 */
export function randomTampering(last: number, random: () => number, turn: number): Tampering {
  const upTo = (count: number) => Math.floor(random() * count)
  const pick = (names: readonly string[]) => names[upTo(names.length)] as string
  const seq = 1 + upTo(last)
  const other = 1 + ((seq + upTo(last - 1)) % last)
  const at = (change: string, where = seq) => changeAt(change, where)
  const kinds: (() => Omit<Tampering, 'name'> & { name: string })[] = [
    () => {
      const column = pick(TEXTS)
      return {
        name: `change ${column} of ${seq}`,
        seqs: [seq],
        statements: [at(appendTo(column))],
      }
    },
    () => {
      const column = pick(NUMBERS)
      return {
        name: `change ${column} of ${seq}`,
        seqs: [seq],
        statements: [at(`${column} = ${column} + 1`)],
      }
    },
    () => {
      const column = pick(HASHES)
      return {
        name: `change ${column} of ${seq}`,
        seqs: [seq],
        statements: [at(`${column} = '${'B'.repeat(43)}'`)],
      }
    },
    () => ({
      name: `forget ${seq} in secret`,
      seqs: [seq],
      statements: [at(ERASED)],
    }),
    () => ({
      name: `call ${seq} a row of before`,
      seqs: [seq],
      statements: [at('v = NULL')],
    }),
    () => ({
      name: `delete ${seq}`,
      seqs: [seq],
      statements: [`DELETE FROM audit_events WHERE partition = '0' AND seq = ${seq}`],
    }),
    () => ({
      name: `take ${seq} out of the chain`,
      seqs: [seq],
      statements: [at('partition = NULL, seq = NULL')],
    }),
    () => ({
      name: `swap ${seq} and ${other}`,
      seqs: [seq, other],
      statements: [at(`seq = ${PARKED}`), at(`seq = ${seq}`, other), at(`seq = ${other}`, PARKED)],
    }),
    () => ({
      name: `move ${seq} behind the end`,
      seqs: [seq],
      statements: [at(`seq = ${last + 1}`)],
    }),
  ]
  return (kinds[turn % kinds.length] as (typeof kinds)[number])()
}

/** Returns a seeded generator of numbers in [0, 1) (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
