/** The changes of the settings of features. */
import type { Policy } from '../../src/policy/policy.ts'
import type { ListedFeature, SettingEffect } from '../../src/validators/feature.ts'
import { type Change, changeOf, changeOfValue, isRecord, isSame, list, shown } from './change.ts'

/** A setting at any depth. */
interface Place {
  /** For people: `features.signIn.roles`. */
  readonly of: string
  /** In `effects`. */
  readonly path: string
  readonly effects: NonNullable<ListedFeature['effects']>
}

/** Yields the features that only one policy has, with what that means for callers. */
export function* changesInFeatures(before: Policy, after: Policy): Generator<Change> {
  yield* changesOfPresence('has', after.features, before.features)
  yield* changesOfPresence('no longer has', before.features, after.features)
}

function* changesOfPresence(
  verb: 'has' | 'no longer has',
  features: readonly ListedFeature[],
  others: readonly ListedFeature[],
): Generator<Change> {
  const effects = verb === 'has' ? EFFECTS : EFFECTS_OF_ABSENCE
  const further = features.filter(({ name }) => !others.some((other) => other.name === name))
  for (const effect of ['widening', 'narrowing', 'neutral'] as const) {
    const names = further
      .filter(({ presence = 'unknown' }) => effects[presence] === effect)
      .map(({ name }) => name)
    if (names.length > 0) yield changeOf(effect, 'features', `features: ${verb} ${list(names)}`)
  }
}

const EFFECTS = {
  more: 'widening',
  less: 'narrowing',
  none: 'neutral',
  unknown: 'widening',
} as const
const EFFECTS_OF_ABSENCE = { ...EFFECTS, more: 'narrowing', less: 'widening' } as const

/** Yields the changes of the settings of each feature that both policies have. */
export function* changesInSettings(before: Policy, after: Policy): Generator<Change> {
  for (const { name, settings } of before.features) {
    const other = after.features.find((feature) => feature.name === name)
    if (other === undefined) continue
    const place = { of: `features.${name}`, path: '', effects: other.effects ?? {} }
    yield* changesAt(place, settings ?? {}, other.settings ?? {})
  }
}

function* changesAt(place: Place, was: unknown, is: unknown): Generator<Change> {
  const effect = place.effects[place.path]
  if (isSame(was, is)) return
  const isGroup = isRecord(was) && isRecord(is)
  // Without an effect of its own, an object that is absent has no members.
  const isPart = effect === undefined && isRecord(was ?? {}) && isRecord(is ?? {})
  if (effect !== 'none' && (isGroup || isPart)) yield* changesOfMembers(place, was ?? {}, is ?? {})
  else if (effect === 'none') yield* neutralChanges(place.of, was, is)
  else if (effect === undefined) yield* changeOfValue(place.of, 'changes', was, is)
  else yield changeBy(effect, place.of, was, is)
}

/** Names each changed member of a group without effects: a long group would be shown only up to its first characters. */
function* neutralChanges(of: string, was: unknown, is: unknown): Generator<Change> {
  if (isSame(was, is)) return
  if (Array.isArray(was) && Array.isArray(is) && was.length === is.length)
    for (const [index, value] of was.entries())
      yield* neutralChanges(`${of}[${index}]`, value, is[index])
  else if (isRecord(was) && isRecord(is)) {
    const [one, another] = [new Map(Object.entries(was)), new Map(Object.entries(is))]
    for (const name of new Set([...one.keys(), ...another.keys()]))
      yield* neutralChanges(`${of}.${name}`, one.get(name), another.get(name))
  } else yield changeBy('none', of, was, is)
}

function* changesOfMembers(place: Place, was: object, is: object): Generator<Change> {
  const { effects } = place
  const [one, another] = [new Map(Object.entries(was)), new Map(Object.entries(is))]
  const prefix = place.path === '' ? '' : `${place.path}.`
  const hasNames = Object.hasOwn(effects, `${prefix}*`)
  for (const name of new Set([...one.keys(), ...another.keys()])) {
    const member = { of: `${place.of}.${name}`, path: prefix + (hasNames ? '*' : name), effects }
    yield* changesAt(member, one.get(name), another.get(name))
  }
}

function changeBy(effect: SettingEffect, of: string, was: unknown, is: unknown): Change {
  const text = `${of}: changes from ${shown(was)} to ${shown(is)}`
  if (effect === 'none') return changeOf('neutral', of, text)
  const direction = directionOf(effect, was, is)
  if (direction === 'none') return changeOf('neutral', of, `${text}: the same entries`)
  return direction === 'tighter'
    ? changeOf('narrowing', of, `${text}: tighter`)
    : changeOf('widening', of, `${text}: looser`)
}

/** Returns the direction of a change. One that is not surely tighter, or goes both ways, is looser. */
function directionOf(
  effect: Exclude<SettingEffect, 'none'>,
  was: unknown,
  is: unknown,
): 'looser' | 'tighter' | 'none' {
  const [before, after] = [was, is].map((value) => value ?? (effect === 'bound' ? undefined : []))
  const isLess = effect === 'less'
  if (Array.isArray(before) && Array.isArray(after)) {
    const [isAdded, isRemoved] = [hasFurther(after, before), hasFurther(before, after)]
    if (!isAdded && !isRemoved) return 'none'
    return (isLess ? isRemoved : isAdded) ? 'looser' : 'tighter'
  }
  const [from, to] = [sizeOf(before), sizeOf(after)]
  return (isLess ? isSmaller(from, to) : isSmaller(to, from)) ? 'tighter' : 'looser'
}

/** Reports whether a list has an entry that another one has not. */
const hasFurther = (list: readonly unknown[], other: readonly unknown[]): boolean =>
  list.some((entry) => !other.some((one) => isSame(entry, one)))

/** The size of a value: it is not known for a text, or for entries. */
type Size = number | 'some'

function sizeOf(value: unknown): Size {
  if (value === undefined) return Number.POSITIVE_INFINITY
  if (typeof value === 'number') return value
  return value === false || (Array.isArray(value) && value.length === 0) ? 0 : 'some'
}

/** Reports whether one size is surely smaller than another. */
function isSmaller(one: Size, other: Size): boolean {
  if (one === 'some') return other === Number.POSITIVE_INFINITY
  return other === 'some' ? one === 0 : one < other
}
