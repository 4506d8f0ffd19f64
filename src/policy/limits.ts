/** The limits of a policy in their complete form. */
import { type LimitText, limitInText } from '../validators/limit.ts'
import type { LimitDefinition } from './definition.ts'

/** Returns the sound limits by name. Throws a `TypeError` for a text that is no limit. */
export function limitsOf(
  definitions: Readonly<Record<string, LimitDefinition | LimitText>>,
  isSound: (name: string) => boolean = () => true,
): ReadonlyMap<string, LimitDefinition> {
  const limits = new Map<string, LimitDefinition>()
  for (const [name, definition] of Object.entries(definitions)) {
    if (!isSound(name)) continue
    const limit = typeof definition === 'string' ? limitInText(definition) : definition
    if (limit === undefined) throw new TypeError(`limits.${name}: not a limit`)
    limits.set(name, limit)
  }
  return limits
}
