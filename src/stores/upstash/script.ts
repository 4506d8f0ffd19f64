/** Lua scripts, sent by name where Redis knows them. */
import type { RedisReply, RedisRest } from './rest.ts'
import { ask, resultOf } from './result.ts'

/** A script with its keys and arguments; resolves to what it returned. */
export type Script = (
  rest: RedisRest,
  keys: readonly string[],
  args: readonly (string | number)[],
) => Promise<unknown>

/**
 * Makes a script callable: `EVALSHA`, and once more in full where Redis does not know it (after a
 * restart or a fail-over), which ran nothing. Throws `Unavailable` where it failed; Redis' own words
 * go nowhere.
 */
export function createScript(text: string): Script {
  /** The name, not its promise: another request may not wait for it. */
  let name: string | undefined
  return async function run(rest, keys, args) {
    name ??= await scriptName(text)
    const tail = [keys.length, ...keys, ...args]
    const [byName] = await rest.send([['EVALSHA', name, ...tail]])
    if (!isUnknownScript(byName)) return resultOf(byName)
    return ask(rest, ['EVAL', text, ...tail])
  }
}

/** Whether Redis did not know a script by its name, and so ran nothing. */
export function isUnknownScript(reply: RedisReply | undefined): boolean {
  return reply?.error?.includes('NOSCRIPT') ?? false
}

/** The name by which Redis knows a script. */
export async function scriptName(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text))
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
