/** The limits of a policy in their complete form. */
import { type LimitText, limitInText } from '../validators/limit.ts'
import type { LimitDefinition, LimitGroup, NamedLimit } from './definition.ts'

/**
 * Returns the sound limits by their own names. Throws a `TypeError` for a text that is no limit, and
 * `Misconfigured` for a mistake in a group of limits.
 */
export function nameLimits(
  definitions: Readonly<Record<string, LimitDefinition | LimitText | LimitGroup>>,
  isSound: (name: string) => boolean = () => true,
): ReadonlyMap<string, NamedLimit> {
  const limits = new Map<string, NamedLimit>()
  for (const [name, definition] of Object.entries(definitions)) {
    if (!isSound(name)) continue
    const limit = typeof definition === 'string' ? limitInText(definition) : definition
    if (limit === undefined) throw new TypeError(`limits.${name}: not a limit`)
    const parts = 'limits' in limit ? limit.limits(name, definitions) : [{ name, ...limit }]
    for (const part of parts) limits.set(part.name, part)
  }
  return limits
}

/** Returns the limits that a route means by a name: one, or all of a group. */
export function limitsNamed<Limit extends Pick<NamedLimit, 'name' | 'group'>>(
  limits: ReadonlyMap<string, Limit>,
  name: string,
): readonly Limit[] {
  return [...limits.values()].filter((limit) => (limit.group ?? limit.name) === name)
}
