/** Recognizes an event that a gateway has written, at a small part of the cost of its schema. */
import type { AuditEvent } from './event.ts'
import { DECISIONS } from './event-schema.ts'

const DECIDED: ReadonlySet<unknown> = new Set(DECISIONS)
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

type Check = (value: unknown) => boolean
const isText: Check = (value) => typeof value === 'string'
const isTextOrNull: Check = (value) => value === null || typeof value === 'string'
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const MAX_LEVELS = 3
/** Whether lists and objects in a value end before they are too deep to be written again. */
const isShallow = (value: unknown, levels = MAX_LEVELS): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (levels > 0 && Object.values(value).every((member) => isShallow(member, levels - 1)))
const isShallowObject: Check = (value) => isObject(value) && isShallow(value)

const ACTOR: Readonly<Record<string, Check>> = {
  issuer: isTextOrNull,
  subject: isTextOrNull,
  client: isTextOrNull,
  tenant: isTextOrNull,
  tokenIdHash: isTextOrNull,
}

const REQUIRED: Readonly<Record<string, Check>> = {
  id: (value) => typeof value === 'string' && UUID.test(value),
  time: (value) =>
    typeof value === 'string' && TIME.test(value) && !Number.isNaN(Date.parse(value)),
  requestId: isText,
  traceId: isText,
  actor: (value) => isObject(value) && hasOnly(value, ACTOR, { key: isText }),
  method: isText,
  route: isTextOrNull,
  decision: (value) => DECIDED.has(value),
  reason: isText,
  status: Number.isSafeInteger,
  limits: (value) => Array.isArray(value) && isShallow(value),
  durationsMs: isShallowObject,
  address: isText,
  colo: isTextOrNull,
}

const OPTIONAL: Readonly<Record<string, Check>> = {
  host: isText,
  origin: isText,
  observed: (value) => Array.isArray(value) && isShallow(value),
  rejected: isShallowObject,
  call: isShallowObject,
  grants: isShallowObject,
  fields: isShallowObject,
}

/**
 * Returns the value if it has the members of an event, with the types that the database accepts. Does
 * NOT check the members of lists and objects in it: a gateway has written them. Returns undefined for
 * any other value, and for an event with an operator's change or a number of lost events. Whether these
 * are events is for the schema to say.
 */
export const writtenEvent = (value: unknown): AuditEvent | undefined =>
  isObject(value) && hasOnly(value, REQUIRED, OPTIONAL)
    ? (value as unknown as AuditEvent)
    : undefined

/** Reports whether the object has all required members, and no others than the optional ones. */
function hasOnly(
  value: Readonly<Record<string, unknown>>,
  required: Readonly<Record<string, Check>>,
  optional: Readonly<Record<string, Check>>,
): boolean {
  let missing = Object.keys(required).length
  for (const name in value) {
    const isRequired = Object.hasOwn(required, name)
    if (isRequired) missing -= 1
    else if (!Object.hasOwn(optional, name)) return false
    const check = isRequired ? required[name] : optional[name]
    if (check?.(value[name]) !== true) return false
  }
  return missing === 0
}
