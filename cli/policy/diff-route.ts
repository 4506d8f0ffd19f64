/** The changes of one route, besides the callers that its permission admits. */
import type { PolicyRoute } from '../../src/policy/policy.ts'
import {
  type Change,
  changeOf,
  changeOfSize,
  changeOfSwitch,
  changeOfValue,
  isSame,
  list,
} from './change.ts'
import { changesInServer } from './diff-calls.ts'
import { changesInSchema } from './diff-schema.ts'
import { roleCaller } from './matrix.ts'
import { authenticationInWords, limitInWords } from './words.ts'

/** The caller and the path for which two relations are compared. */
const PROBE = { ...roleCaller([]), subject: '{subject}', client: '{client}', tenant: '{tenant}' }
/** Returns the query of a route's relation, with names in place of values. */
export const queryOf = ({ relation }: PolicyRoute) =>
  relation?.queryOf({ ...PROBE, issuer: '{issuer}' }, (name) => `{params.${name}}`)

const PARTS = ['params', 'query', 'headers', 'body'] as const

/** Fields that this module compares by themselves, or that others compare. */
const COMPARED = new Set([
  ...['method', 'host', 'path', 'permission', 'permissionMode', 'relation', 'limits', 'input'],
  ...['maxBodyBytes', 'originTimeoutMs', 'dpop', 'forwardAuthorization', 'forwardCookies'],
  ...['webSocketOrigins', 'coalesce', 'inspect', 'cors', 'originSpelling', 'mcp', 'authentication'],
  'credentials',
])

export function* changesInRoute(
  route: string,
  before: PolicyRoute,
  after: PolicyRoute,
): Generator<Change> {
  yield* changesInPermission(route, before, after)
  yield* changesInRelation(route, before, after)
  yield* changesInRouteLimits(route, before, after)
  for (const part of PARTS)
    yield* changesInSchema(`${part} of ${route}`, before.input[part], after.input[part])
  yield* changeOfSize(route, 'maxBodyBytes', before.maxBodyBytes, after.maxBodyBytes, ' bytes')
  if (before.dpop !== after.dpop) {
    const text = `${route}: a DPoP proof is required ${after.dpop ? 'now' : 'no longer'}`
    yield changeOf(after.dpop ? 'narrowing' : 'widening', route, text)
  }
  yield* changesInAuthentication(route, before, after)
  yield* changeOfSwitch(route, 'forwardCookies is on', before.forwardCookies, after.forwardCookies)
  yield* changesInList(
    route,
    'forwards Authorization of',
    schemesOf(before.forwardAuthorization),
    schemesOf(after.forwardAuthorization),
  )
  yield* changesInList(route, 'WebSockets from', before.webSocketOrigins, after.webSocketOrigins)
  yield* changesInServer(route, before, after)
  for (const field of ['inspect', 'cors'] as const) {
    const [one, another] = [before, after].map((row) =>
      field === 'cors' ? row.cors : withoutCalls(row.inspect),
    )
    if (one !== undefined && another !== undefined) yield* changeOfValue(route, field, one, another)
    else if ((one ?? another) !== undefined) {
      const isOpened = (field === 'cors') === (one === undefined)
      const text = `${route}: ${field} is ${one === undefined ? 'added' : 'removed'}`
      yield changeOf(isOpened ? 'widening' : 'narrowing', route, text)
    }
  }
  yield* changeOfValue(route, 'originSpelling', before.originSpelling, after.originSpelling)
  for (const field of ['originTimeoutMs', 'coalesce'] as const)
    if (before[field] !== after[field])
      yield changeOf(
        'neutral',
        route,
        `${route}: ${field} from ${before[field]} to ${after[field]}`,
      )
  const [was, is] = [before, after].map(({ credentials }) => credentials?.words ?? 'none')
  if (was !== is)
    yield changeOf('neutral', route, `${route}: credentials at the origin from ${was} to ${is}`)
  const others = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  for (const field of others.filter((name) => !COMPARED.has(name)))
    yield* changeOfValue(
      route,
      field,
      before[field as keyof PolicyRoute],
      after[field as keyof PolicyRoute],
    )
}

const schemesOf = (forwarded: PolicyRoute['forwardAuthorization']): readonly string[] =>
  typeof forwarded === 'boolean'
    ? forwarded
      ? ['bearer', 'dpop']
      : []
    : forwarded.map((scheme) => scheme.toLowerCase())

/** The calls of JSON-RPC are compared elsewhere. */
const withoutCalls = (inspect: PolicyRoute['inspect']) =>
  inspect && {
    ...inspect,
    jsonRpc: inspect.jsonRpc && { maxBatch: inspect.jsonRpc.maxBatch },
  }

function* changesInAuthentication(
  route: string,
  before: PolicyRoute,
  after: PolicyRoute,
): Generator<Change> {
  const [was, is] = [before, after].map(authenticationInWords)
  if (was === undefined && is !== undefined)
    yield changeOf('narrowing', route, `${route}: requires a ${is} now`)
  else if (was !== undefined && is === undefined)
    yield changeOf('widening', route, `${route}: no longer requires a ${was}`)
  else if (was !== is)
    yield changeOf('widening', route, `${route}: requires a ${is} instead of a ${was}`)
}

/** Roles are compared elsewhere. Scopes of tokens without roles name permissions too. */
function* changesInPermission(route: string, before: PolicyRoute, after: PolicyRoute) {
  const [was, is] = [before.permission, after.permission]
  if (was === is || was === undefined || is === undefined) return
  yield changeOf('widening', route, `callers with the scope ${is} may gain ${route}`)
  yield changeOf('narrowing', route, `callers with the scope ${was} may lose ${route}`)
}

function* changesInRelation(
  route: string,
  before: PolicyRoute,
  after: PolicyRoute,
): Generator<Change> {
  const [was, is] = [queryOf(before), queryOf(after)]
  const [wasName, isName] = [was, is].map((query) => `${query?.object}#${query?.relation}`)
  const [wasMode, isMode] = [before.relation?.mode, after.relation?.mode]
  if (wasMode === undefined && isMode === undefined) return
  if (wasMode === undefined)
    yield changeOf('narrowing', route, `${route}: the relation ${isName} is required now`)
  else if (isMode === undefined)
    yield changeOf('widening', route, `${route}: the relation ${wasName} is no longer required`)
  else {
    if (!isSame(was, is)) {
      const text =
        wasName === isName ? `${isName} has other tuples` : `${wasName} becomes ${isName}`
      yield changeOf('widening', route, `${route}: the relation ${text}`)
    }
    if (wasMode !== isMode) {
      const text = `${route}: the relation ${isName} is in mode ${isMode} now`
      yield changeOf(isMode === 'observe' ? 'widening' : 'narrowing', route, text)
    }
  }
}

function* changesInRouteLimits(route: string, before: PolicyRoute, after: PolicyRoute) {
  const namesOf = ({ limits }: PolicyRoute) => limits.map(({ name }) => name)
  const [was, is] = [namesOf(before), namesOf(after)]
  for (const limit of before.limits)
    if (!is.includes(limit.name))
      yield changeOf(
        'widening',
        route,
        `${route}: no longer limited by ${limit.name} (${limitInWords(limit)})`,
      )
  for (const limit of after.limits)
    if (!was.includes(limit.name))
      yield changeOf(
        'narrowing',
        route,
        `${route}: limited by ${limit.name} now (${limitInWords(limit)})`,
      )
}

/** Yields the changes of a list of names that admit something. */
export function* changesInList(
  of: string,
  what: string,
  before: readonly string[],
  after: readonly string[],
): Generator<Change> {
  const added = after.filter((name) => !before.includes(name))
  const removed = before.filter((name) => !after.includes(name))
  if (added.length > 0) yield changeOf('widening', of, `${of}: ${what} ${list(added)} now`)
  if (removed.length > 0)
    yield changeOf('narrowing', of, `${of}: ${what} ${list(removed)} no longer`)
}
