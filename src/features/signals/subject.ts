/** Maps subject identifiers (RFC 9493, SSF 1.0 section 3) to subjects of this gateway. */

import * as z from 'zod/mini'
import type { $ZodType } from 'zod/v4/core'
import { readOwnMember } from '../../access/tokens/jws.ts'
import { tokenId } from '../../validators/claims.ts'
import { name } from '../../validators/names.ts'
import type { Transmitter } from './transmitter.ts'

/** A name that a token can have, and what it names. */
export interface Named {
  readonly kind: 'subject' | 'session' | 'tenant' | 'token'
  readonly issuer: string
  readonly value: string
}

/** An e-mail address or a phone number, as an index of signed-in users knows it. */
export interface Contact {
  readonly kind: 'email' | 'phone_number'
  readonly issuer: string
  readonly value: string
}

/** All of it is the same subject, as narrowly as the transmitter names it. */
export interface SignalSubject {
  readonly users: readonly Named[]
  readonly contacts: readonly Contact[]
  readonly sessions: readonly Named[]
  readonly tenants: readonly Named[]
}

/** `foreign`: of an issuer that the transmitter must not affect. `unsupported`: of an unknown format. */
export type SubjectMistake = 'foreign' | 'unsupported'

type Rules = Pick<Transmitter, 'issuer' | 'subjectsOf'>

const EMPTY: SignalSubject = { users: [], contacts: [], sessions: [], tenants: [] }
const MAX_ALIASES = 8

const SUBJECT = name(255)
const SHORT = name(256)
const CONTACT = name(320)
const ISSUER = name(2_048)

/** Returns what an identifier names. Does NOT look up e-mail addresses and phone numbers. */
export function subjectIn(identifier: unknown, rules: Rules): SignalSubject | SubjectMistake {
  const format = formatOf(identifier)
  if (format === undefined) return 'unsupported'
  if (format !== 'complex' && format !== 'none') return userIn(identifier, rules)
  const user = memberOf(identifier, 'user')
  const session = memberOf(identifier, 'session')
  const tenant = memberOf(identifier, 'tenant')
  const parts = [
    user === undefined ? 'unsupported' : userIn(user, rules),
    session === undefined ? 'unsupported' : namedAs('session', session, rules),
    // A tenant beside a user or a session only confirms them. Alone, it is the subject.
    tenant === undefined || (user ?? session) !== undefined
      ? 'unsupported'
      : namedAs('tenant', tenant, rules),
  ] as const
  if (parts.includes('foreign')) return 'foreign'
  const found = parts.filter((part) => typeof part !== 'string')
  return found.length === 0 ? 'unsupported' : merge(found)
}

function userIn(identifier: unknown, rules: Rules): SignalSubject | SubjectMistake {
  switch (formatOf(identifier)) {
    case 'iss_sub':
    case 'opaque':
    case 'jwt_id':
      return namedAs('subject', identifier, rules)
    case 'email':
      return contactIn('email', memberOf(identifier, 'email'), rules)
    case 'phone_number':
      return contactIn('phone_number', memberOf(identifier, 'phone_number'), rules)
    case 'account': {
      const uri = memberOf(identifier, 'uri')
      if (typeof uri !== 'string' || !uri.startsWith('acct:')) return 'unsupported'
      return contactIn('email', uri.slice('acct:'.length), rules)
    }
    case 'aliases':
      return aliasesIn(memberOf(identifier, 'identifiers'), rules)
    default:
      return 'unsupported'
  }
}

/** Every alias is the same subject (RFC 9493 section 3.2.8): one that is not supported changes nothing. */
function aliasesIn(list: unknown, rules: Rules): SignalSubject | SubjectMistake {
  if (!Array.isArray(list) || list.length === 0 || list.length > MAX_ALIASES) return 'unsupported'
  // Aliases must not be nested.
  const found = list.map((one) =>
    formatOf(one) === 'aliases' ? 'unsupported' : userIn(one, rules),
  )
  if (found.includes('foreign')) return 'foreign'
  const all = found.filter((part) => typeof part !== 'string')
  return all.length === 0 ? 'unsupported' : merge(all)
}

/** Returns what an identifier with an issuer, or an opaque one, names. */
function namedAs(
  kind: 'subject' | 'session' | 'tenant',
  identifier: unknown,
  rules: Rules,
): SignalSubject | SubjectMistake {
  const format = formatOf(identifier)
  const isToken = format === 'jwt_id'
  const member = { iss_sub: 'sub', opaque: 'id', jwt_id: 'jti' }[format ?? ''] ?? ''
  const value = textIn(
    isToken ? tokenId : kind === 'subject' ? SUBJECT : SHORT,
    memberOf(identifier, member),
  )
  if (value === undefined) return 'unsupported'
  const issuers =
    format === 'opaque' ? rules.subjectsOf : issuersFor(memberOf(identifier, 'iss'), rules)
  if (typeof issuers === 'string') return issuers
  const named = issuers.map((issuer): Named => ({ kind: isToken ? 'token' : kind, issuer, value }))
  if (isToken || kind === 'session') return { ...EMPTY, sessions: named }
  return kind === 'tenant' ? { ...EMPTY, tenants: named } : { ...EMPTY, users: named }
}

/** The transmitter's own name stands for all issuers that it may affect. */
function issuersFor(
  iss: unknown,
  { issuer, subjectsOf }: Rules,
): readonly string[] | SubjectMistake {
  const text = textIn(ISSUER, iss)
  if (text === undefined) return 'unsupported'
  if (subjectsOf.includes(text)) return [text]
  return text === issuer ? subjectsOf : 'foreign'
}

function contactIn(
  kind: Contact['kind'],
  text: unknown,
  { subjectsOf }: Rules,
): SignalSubject | SubjectMistake {
  const value = textIn(CONTACT, text)
  if (value === undefined) return 'unsupported'
  return { ...EMPTY, contacts: subjectsOf.map((issuer) => ({ kind, issuer, value })) }
}

const merge = (all: readonly SignalSubject[]): SignalSubject => ({
  users: all.flatMap(({ users }) => users),
  contacts: all.flatMap(({ contacts }) => contacts),
  sessions: all.flatMap(({ sessions }) => sessions),
  tenants: all.flatMap(({ tenants }) => tenants),
})

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const memberOf = (value: unknown, member: string): unknown =>
  isObject(value) ? (readOwnMember(value, member) ?? undefined) : undefined

/** Returns the format; `none` for a complex subject of a draft. Drafts of RISC have `subject_type: iss-sub`. */
function formatOf(identifier: unknown): string | undefined {
  if (!isObject(identifier)) return undefined
  const format = memberOf(identifier, 'format') ?? memberOf(identifier, 'subject_type') ?? 'none'
  return typeof format === 'string' ? format.replaceAll('-', '_') : undefined
}

const textIn = (schema: $ZodType<string>, value: unknown): string | undefined =>
  z.safeParse(schema, value).data
