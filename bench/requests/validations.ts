/** Tokens to validate, their order, and which of them are cached. */
import { validationAnswer } from '../token-costs/validation-answer.ts'
import type { Question } from './ask.ts'
import type { Credentials, Holder } from './credentials.ts'
import { bearing } from './questions.ts'
import { WHO_PATH } from './variants.ts'

export const ALGORITHMS = ['ES256', 'RS256'] as const
export type Algorithm = (typeof ALGORITHMS)[number]

/** Number of cached tokens in five: all, four, none. */
export const MIXES = { cached: 5, mixed: 4, uncached: 0 } as const
export type Mix = keyof typeof MIXES
const IN_ALL = 5

/** Number of cached tokens, used in turn. */
const KNOWN_TOKENS = 100

/** Requests that validate tokens. */
export interface Validations {
  /** Tokens to cache: send each once before everything else. */
  readonly known: readonly Question[]
  /** Returns `count` requests, with new tokens as needed. `count` must be a multiple of five. */
  of(mix: Mix, count: number): Promise<readonly Question[]>
}

/** Prepares tokens with one algorithm. */
export async function prepareValidations(
  { mint }: Pick<Credentials, 'mint'>,
  algorithm: Algorithm,
): Promise<Validations> {
  const known = await mint(KNOWN_TOKENS, { algorithm })
  let turn = 0
  return {
    known: known.map((holder) => who(holder, false)),
    async of(mix, count) {
      const remembered = MIXES[mix]
      const fresh = await mint((count * (IN_ALL - remembered)) / IN_ALL, { algorithm })
      return Array.from({ length: count }, (_, index) => {
        if (index % IN_ALL >= remembered) return who(fresh.pop(), false)
        turn = (turn + 1) % KNOWN_TOKENS
        return who(known[turn], true)
      })
    },
  }
}

function who(holder: Holder | undefined, remembered: boolean): Question {
  if (holder === undefined) throw new RangeError('validations: fewer tokens than questions')
  return {
    ...{ method: 'GET', path: WHO_PATH, status: 200, headers: bearing(holder.credential) },
    answer: validationAnswer(holder.subject, remembered),
  }
}

/** Counts of a token cache. */
export interface Counted {
  readonly hits: number
  readonly misses: number
}

/** Throws an `Error` of one line if the cache counts differ from the requests. */
export function refuseOtherCount(mix: Mix, asked: number, { hits, misses }: Counted): void {
  const expected = (asked * MIXES[mix]) / IN_ALL
  if (hits !== expected || hits + misses !== asked)
    throw new Error(`${mix}: ${hits} hits and ${misses} misses of ${asked}, not ${expected} hits`)
}
