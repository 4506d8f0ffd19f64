/** Compares the definitions of tools with approved ones. */
import { sha256 } from '../../crypto/sha256.ts'
import { isRecord } from '../../inspection/json-rpc.ts'

/**
 * Returns the hash of a tool's definition, all of its members except `_meta`: `sha256-` and the
 * base64url SHA-256 of its members, sorted by name.
 */
export async function definitionHash(tool: object): Promise<string> {
  const { _meta, ...definition } = tool as { readonly _meta?: unknown }
  return `sha256-${await sha256(JSON.stringify(sorted(definition)))}`
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return ['[]', ...value.map(sorted)]
  if (!isRecord(value)) return value
  const names = Object.keys(value).sort()
  // Not an object: names such as `__proto__` and `0` would not keep their place.
  return ['{}', ...names.map((name) => [name, sorted(value[name])])]
}
