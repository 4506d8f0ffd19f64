/** A change between two policies. */

/** Who may do more, who may do less, or neither. A change in an unknown direction counts as widening. */
export type Effect = 'widening' | 'narrowing' | 'neutral'

export interface Change {
  readonly effect: Effect
  /** The route (`GET /orders`) or the field (`limits.standard`). */
  readonly of: string
  readonly text: string
  /** The callers that gain or lose the route: roles, `anonymous` and `no role`. */
  readonly gain?: readonly string[]
  readonly lose?: readonly string[]
}

export const changeOf = (effect: Effect, of: string, text: string): Change => ({ effect, of, text })

/** Returns a list in words: `a, b and c`. */
export function list(names: readonly string[]): string {
  const last = names.at(-1) ?? ''
  return names.length < 2 ? last : `${names.slice(0, -1).join(', ')} and ${last}`
}

/** Returns the value as JSON. Maps count by their entries, and functions by their source. */
function textOf(value: unknown): string {
  const text = JSON.stringify(value, (_, part: unknown) => {
    if (part instanceof Map) return [...part]
    if (part instanceof RegExp) return String(part)
    return typeof part === 'function' ? String(part) : part
  })
  return text ?? 'none'
}

export const isSame = (one: unknown, another: unknown) => textOf(one) === textOf(another)

const MAX_CHARACTERS = 60

/** Returns a value for people. A long one is cut. */
export function shown(value: unknown): string {
  if (value === undefined) return 'the default'
  const text = textOf(value)
  return text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text
}

/** Yields a change of a number that admits more if it is larger. */
export function* changeOfSize(
  of: string,
  name: string,
  before: number,
  after: number,
  unit = '',
): Generator<Change> {
  if (before === after) return
  const effect = after > before ? 'widening' : 'narrowing'
  yield changeOf(effect, of, `${of}: ${name} from ${before}${unit} to ${after}${unit}`)
}

/** Yields the change of a switch that admits more if it is on. */
export function* changeOfSwitch(
  of: string,
  text: string,
  before: boolean,
  after: boolean,
): Generator<Change> {
  if (before === after) return
  yield changeOf(
    after ? 'widening' : 'narrowing',
    of,
    `${of}: ${text} ${after ? 'now' : 'no longer'}`,
  )
}

/** Yields a change in an unknown direction. */
export function* changeOfValue(
  of: string,
  name: string,
  before: unknown,
  after: unknown,
): Generator<Change> {
  if (isSame(before, after)) return
  yield changeOf('widening', of, `${of}: ${name} from ${shown(before)} to ${shown(after)}`)
}

/** Yields a change in an unknown direction for each member, at any depth, that differs. */
export function* changesOfMembers(of: string, before: unknown, after: unknown): Generator<Change> {
  if (!isRecord(before) || !isRecord(after))
    return yield* changeOfValue(of, 'changes', before, after)
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)]))
    yield* changesOfMembers(`${of}.${name}`, before[name], after[name])
}

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value?.constructor === Object
