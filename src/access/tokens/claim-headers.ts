/** Headers with claims of a verified token, for the origin: `identityHeaders` of a policy. */
import { headerWord, listWord } from '../../http/header-word.ts'
import { type ClaimPath, parsePath } from '../../validators/claim-path.ts'
import type { Principal } from '../principal.ts'
import { valuesAt } from './present.ts'

type Payload = Readonly<Record<string, unknown>>

/** Never shortened: a part of a list of groups could mean something else. */
const MAX_HEADER_CHARS = 4_096

/** Creates the function that returns the headers of a token. Undefined: it has none of the claims. */
export function createClaimHeaders(
  headers: ReadonlyMap<string, ClaimPath> = new Map(),
): (payload: Payload) => Principal['headers'] {
  const paths = [...headers].map(([name, path]) => [name, parsePath(path)] as const)
  return function readClaimHeaders(payload) {
    const found: (readonly [string, string])[] = []
    for (const [name, path] of paths) {
      const values = valuesAt(payload, path)
      const isList = values.length > 1 || Array.isArray(values[0])
      const words = values.flat().flatMap(textOf)
      const value = isList ? words.map(listWord).join(',') : headerWord(words[0] ?? '')
      if (value !== '' && value.length <= MAX_HEADER_CHARS) found.push([name, value])
    }
    return found.length === 0 ? undefined : found
  }
}

const textOf = (value: unknown): readonly string[] =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? [String(value)]
    : []
