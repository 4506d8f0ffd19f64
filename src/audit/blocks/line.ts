/**
 * The text of an event in a block. Fields are separated by tabs, which JSON never contains: the public
 * part, the salt and the caller, and with an operator's change its salt and the change. After an erasure,
 * the salt is empty, and the commitment and the erasure replace the values.
 */
import { type Digest, sha256 } from '../../crypto/sha256.ts'
import { type AuditEvent, NO_ACTOR } from '../event.ts'
import { ERASED_ADDRESS, newSalt } from '../personal.ts'

/** What replaces an erased part. */
export interface ErasedPart {
  readonly commitment: string
  readonly erasure: string
}

/** The parts of an event that an erasure can remove. */
export type PersonalPart = 'caller' | 'change'

/** The place of each part's salt among the fields. Its values follow. */
const SALT_AT = { caller: 1, change: 3 } as const satisfies Record<PersonalPart, number>
export const SEPARATOR = '\t'

export function lineOf(event: AuditEvent): string {
  const { requestId, traceId, actor, address, grants, fields, change, ...open } = event
  const caller = { requestId, traceId, actor, address, grants, fields }
  const line = [JSON.stringify(open), newSalt(), JSON.stringify(caller)]
  if (change !== undefined) line.push(newSalt(), JSON.stringify(change))
  return line.join(SEPARATOR)
}

const FORM = /^[\w-]{43}$/

/**
 * Reports whether a line has the form in which gateways and erasures write it. The hash of a block proves its lines
 * only then: a commitment with a tab could present two commitments as one.
 */
export function isLine(line: string): boolean {
  const fields = line.split(SEPARATOR)
  if (line.includes('\n') || (fields.length !== 3 && fields.length !== 5)) return false
  return Object.values(SALT_AT).every((at) => {
    const [salt, values] = [fields[at], fields[at + 1]]
    if (salt === undefined || values === undefined) return true
    return salt === '' ? isErasedPart(values) : FORM.test(salt)
  })
}

function isErasedPart(values: string): boolean {
  try {
    const { commitment, erasure } = JSON.parse(values) as Record<string, unknown>
    const isForm = typeof commitment === 'string' && FORM.test(commitment)
    // So no member is repeated.
    const isWritten = JSON.stringify({ commitment, erasure }) === values
    return isForm && isWritten && typeof erasure === 'string'
  } catch {
    return false
  }
}

/** Returns what the hash of a block covers of a line: the public part and a commitment for each other. */
export async function coveredBy(line: string, digest: Digest = sha256): Promise<string> {
  const fields = line.split(SEPARATOR)
  let covered = fields[0] ?? ''
  for (let at = 1; at < fields.length; at += 2) {
    const given = commitmentOf(fields[at] ?? '', fields[at + 1] ?? '', digest)
    covered += SEPARATOR + (typeof given === 'string' ? given : await given)
  }
  return covered
}

const commitmentOf = (salt: string, values: string, digest: Digest): string | Promise<string> =>
  salt === '' ? (JSON.parse(values) as ErasedPart).commitment : digest(`${salt}\n${values}`)

/**
 * Returns the event of a line, with its members in the order in which gateways write them. Erased parts have
 * the values of an erased row.
 */
export function eventOfLine(line: string): AuditEvent {
  const [open = '', salt = '', caller = '', changeSalt = '', change = ''] = line.split(SEPARATOR)
  const { id, time, ...decision } = JSON.parse(open) as AuditEvent
  const { requestId, traceId, actor, ...more } =
    salt === '' ? ERASED_CALLER : (JSON.parse(caller) as AuditEvent)
  return {
    ...{ id, time, requestId, traceId, actor },
    ...decision,
    ...more,
    ...(changeSalt !== '' && { change: JSON.parse(change) as AuditEvent['change'] }),
  } as AuditEvent
}

/**
 * Returns the event of a line as {@link eventOfLine} does, but without the members that neither filters nor counts read,
 * and in another order, which is cheaper.
 */
export function countedOfLine(line: string): AuditEvent {
  const [open = '', salt = '', caller = '', changeSalt = '', change = ''] = line.split(SEPARATOR)
  const event = JSON.parse(open) as AuditEvent
  const { requestId, actor, address } =
    salt === '' ? ERASED_CALLER : (JSON.parse(caller) as AuditEvent)
  Object.assign(event, { requestId, actor, address })
  if (changeSalt !== '') event.change = JSON.parse(change) as AuditEvent['change']
  return event
}

const ERASED_CALLER = { requestId: '', traceId: '', actor: NO_ACTOR, address: ERASED_ADDRESS }

/** Returns the line without a part; the same line if it does not have the part any more. */
export async function withoutPart(
  line: string,
  part: PersonalPart,
  erasure: string,
  digest: Digest = sha256,
): Promise<string> {
  const fields = line.split(SEPARATOR)
  const at = SALT_AT[part]
  const [salt, values] = [fields[at] ?? '', fields[at + 1] ?? '']
  if (salt === '') return line
  const left: ErasedPart = { commitment: await digest(`${salt}\n${values}`), erasure }
  fields.splice(at, 2, '', JSON.stringify(left))
  return fields.join(SEPARATOR)
}

export function erasuresIn(line: string): readonly string[] {
  const fields = line.split(SEPARATOR)
  const erased = [1, 3].filter((at) => fields[at] === '')
  return erased.map((at) => (JSON.parse(fields[at + 1] ?? '') as ErasedPart).erasure)
}
