/** Fields of routes that a document sets itself: `x-portcullis-permission: orders:read`. */
import type { Coverage } from './coverage.ts'
import { at, isObject, type Located } from './located.ts'

const PREFIX = 'x-portcullis-'

const FIELDS: ReadonlyMap<string, string> = new Map(
  [
    'anonymous',
    'authentication',
    'coalesce',
    'dpop',
    'forwardAuthorization',
    'forwardCookies',
    'inspect',
    'limits',
    'maxBodyBytes',
    'originSpelling',
    'originTimeoutMs',
    'permission',
    'relation',
    'webSocketOrigins',
  ].map((field) => [
    PREFIX + field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
    field,
  ]),
)
const LIMIT = `${PREFIX}limit`

export interface Extensions {
  readonly fields: ReadonlyMap<string, unknown>
  /** Names of extensions that do not exist. */
  readonly unknown: readonly string[]
}

/** Returns the fields of several objects. Those of later objects replace those of earlier ones. */
export function extensionsOf(coverage: Coverage, objects: readonly Located[]): Extensions {
  const fields = new Map<string, unknown>()
  const unknown: string[] = []
  for (const object of objects) {
    for (const [name, value] of Object.entries(isObject(object.value) ? object.value : {})) {
      if (!name.startsWith(PREFIX)) continue
      coverage.useAll(at(object, name))
      const field = FIELDS.get(name)
      if (name === LIMIT) fields.set('limits', [value])
      else if (field === undefined) unknown.push(name)
      else if (field === 'anonymous' && value === false) fields.delete('anonymous')
      else fields.set(field, value)
      if (field === 'permission') fields.delete('anonymous')
      if (field === 'anonymous' && value === true) fields.delete('permission')
    }
  }
  return { fields, unknown }
}
