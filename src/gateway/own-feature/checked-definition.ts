/** Checks the definition of a feature, and the features of a policy against each other. */

import * as z from 'zod/mini'
import { Misconfigured } from '../../errors.ts'
import { type Mistake, mistakeAt } from '../../problems/mistake.ts'
import { isProblemCode, type ProblemCode } from '../../problems/problem.ts'
import type { Denial, Dependency, OAuthErrorCode } from '../../problems/reasons.ts'
import { issuesOf, mistakeOf } from '../../validators/configuration.ts'
import type { ListedFeature } from '../../validators/feature.ts'
import { PERMISSION } from '../../validators/names.ts'
import { METHODS } from '../../validators/policy.ts'
import { dropsUnknownKeys, zodSchema } from '../../validators/strictness.ts'
import type { Feature } from '../feature.ts'
import type { Declared, FeatureCall, FeatureRoute } from './declaration.ts'
import { FEATURE_NAME, isReserved, kebab, snake, sourceOf, upper } from './names.ts'

const MAX_SERIES = 100
const MAX_MEMBERS = 32

/** Printable ASCII. It appears in `HELP`, problem documents and OpenAPI. */
const text = (maxChars: number) =>
  z
    .string()
    .check(
      z.minLength(1, 'must not be empty'),
      z.maxLength(maxChars, `must have at most ${maxChars} characters`),
      z.regex(/^[\x20-\x7e]*$/, 'must be printable ASCII'),
    )
const named = (pattern: RegExp, example: string) =>
  z.string().check(z.regex(pattern, `must be a name such as ${example}`))
const table = <Schema extends z.core.$ZodType>(schema: Schema) =>
  z.optional(
    z
      .record(z.string(), schema)
      .check(
        z.refine(
          (members) => Object.keys(members).length <= MAX_MEMBERS,
          `must have at most ${MAX_MEMBERS} members`,
        ),
      ),
  )
const isFunction = z.custom<unknown>((value) => typeof value === 'function', 'must be a function')

const statuses = [400, 402, 403, 404, 409, 410, 412, 422, 423, 425, 428, 451] as const
const problemSchema = z.strictObject({
  status: z.custom<unknown>(
    (value) => statuses.some((status) => status === value),
    `must be one of ${statuses.join(', ')}; a dependency that fails throws Unavailable`,
  ),
  title: text(60),
})
const label = /^[a-z][a-z0-9_]{0,39}$/
const metricSchema = z.strictObject({
  help: text(200),
  labels: z.optional(
    z
      .record(
        named(label, 'outcome'),
        z.array(named(/^[\w.:/-]{1,64}$/, 'closed')).check(z.minLength(1)),
      )
      .check(
        z.refine(
          (labels) =>
            Object.values(labels).reduce((count, values) => count * values.length, 1) <= MAX_SERIES,
          `must have at most ${MAX_SERIES} series in all`,
        ),
      ),
  ),
})
const strict = zodSchema.check(
  z.refine((schema) => !dropsUnknownKeys(schema), {
    error: 'drops unknown keys; use z.strictObject, or z.looseObject to let them pass',
    abort: true,
  }),
)
const strictObject = strict.check(
  z.refine(({ _zod: { def } }) => def.type === 'object', 'must be a z.strictObject'),
)
const described = {
  method: z.enum(METHODS),
  params: z.optional(strictObject),
  query: z.optional(strictObject),
  body: z.optional(strict),
  summary: text(120),
  description: z.optional(z.string()),
  response: text(300),
  reply: z.optional(isFunction),
  example: z.optional(z.looseObject({})),
  problems: z.optional(z.array(z.string())),
}
const path = named(/^(?:\/(?:[a-z0-9-]+|:[a-z]\w*))+$/i, '/front-door/:id')

const definitionSchema = z.strictObject({
  name: z.string().check(
    z.regex(FEATURE_NAME, 'must be in camel case, such as frontDoor'),
    z.maxLength(40, 'must have at most 40 characters'),
    z.refine((name) => !isReserved(name), 'is reserved for the gateway'),
  ),
  requires: z.optional(z.array(z.string())),
  variables: table(zodSchema),
  problems: table(problemSchema),
  metrics: table(metricSchema),
  auditFields: z.optional(
    z.array(named(/^[a-z][A-Za-z0-9]{0,39}$/, 'ticket')).check(z.maxLength(8)),
  ),
  keys: table(text(200)),
  operatorCalls: table(
    z.strictObject({
      ...described,
      path,
      permission: z.string(),
      tenants: z.optional(z.boolean()),
    }),
  ),
  routes: table(
    z
      .strictObject({
        ...described,
        path,
        permission: z.optional(named(PERMISSION, 'door:read')),
        anonymous: z.optional(z.literal(true)),
        limits: z.optional(z.array(z.string())),
      })
      .check(
        z.refine(
          ({ permission, anonymous }) => (permission === undefined) === (anonymous === true),
          'requires exactly one of permission and anonymous',
        ),
      ),
  ),
  mistakesIn: z.optional(isFunction),
  create: isFunction,
})

export interface CheckableDefinition extends Partial<Omit<Declared, 'auditField' | 'key'>> {
  readonly name: string
  readonly auditFields?: readonly string[] | undefined
  readonly keys?: Readonly<Record<string, string>> | undefined
  readonly requires?: readonly string[] | undefined
}

/** Throws one `Misconfigured` with all mistakes of a definition. */
export function refuseMistakes(definition: CheckableDefinition): void {
  const name = typeof definition?.name === 'string' ? definition.name : 'defineFeature()'
  const issues = issuesOf(definitionSchema, definition)
  const mistakes = issues.map((issue) => mistakeOf(issue, ['features', name]))
  if (mistakes.length === 0)
    for (const [path, message] of mistakesInNames(definition))
      mistakes.push(mistakeAt('invalid_value', ['features', name, ...path], message))
  if (mistakes.length > 0) throw new Misconfigured('The policy', mistakes)
}

/** Names that others see begin with the name of the feature, so that no two features share one. */
type Found = readonly [path: readonly string[], message: string]

function* mistakesInNames(definition: CheckableDefinition): Generator<Found> {
  const { name, variables = {}, problems = {}, metrics = {}, keys = {} } = definition
  for (const variable of Object.keys(variables))
    if (!variable.startsWith(upper(name)) || !/^[A-Z0-9_]{1,64}$/.test(variable))
      yield [['variables', variable], `must begin with ${upper(name)}, in upper case`]
  for (const code of Object.keys(problems)) {
    if (!code.startsWith(snake(name)) || !/^[a-z0-9_]{1,64}$/.test(code))
      yield [['problems', code], `must begin with ${snake(name)}, in lower case`]
    else if (isReservedCode(code))
      yield [['problems', code], 'is a code of the gateway; choose another']
  }
  for (const metric of Object.keys(metrics))
    if (!metric.startsWith(snake(name)) || !/^[a-z0-9_]{1,64}_total$/.test(metric))
      yield [
        ['metrics', metric],
        `must begin with ${snake(name)} and end with _total, in lower case`,
      ]
  for (const key of Object.keys(keys))
    if (!/^[a-z][a-z0-9-]{0,39}$/.test(key))
      yield [['keys', key], 'must be lower-case letters, digits and hyphens']
  yield* mistakesInPaths(definition, 'operatorCalls', `/${kebab(name)}`)
  yield* mistakesInPaths(definition, 'routes', `/-/${kebab(name)}`)
  for (const [id, { permission }] of Object.entries(definition.operatorCalls ?? {}))
    if (!permission.startsWith(`portcullis:${kebab(name)}:`) || !PERMISSION.test(permission))
      yield [['operatorCalls', id, 'permission'], `must be portcullis:${kebab(name)}:<verb>`]
}

function* mistakesInPaths(
  definition: CheckableDefinition,
  slot: 'operatorCalls' | 'routes',
  beginning: string,
): Generator<Found> {
  const seen = new Map<string, string>()
  const entries: [string, FeatureCall | FeatureRoute][] = Object.entries(definition[slot] ?? {})
  for (const [id, { method, path, problems = [] }] of entries) {
    if (path !== beginning && !path.startsWith(`${beginning}/`))
      yield [[slot, id, 'path'], `must begin with ${beginning}`]
    // A parameter matches what another name of a parameter matches.
    const place = `${method} ${path.replaceAll(/:\w+/g, ':')}`
    const other = seen.get(place)
    if (other !== undefined) yield [[slot, id, 'path'], `${other} has the same method and path`]
    seen.set(place, id)
    for (const code of problems)
      if (!Object.hasOwn(definition.problems ?? {}, code))
        yield [[slot, id, 'problems'], `unknown problem ${code}; declare it in problems`]
  }
}

/** Yields what a feature shares with an earlier one of the list, and what it requires and the list lacks. */
export function* conflictsOf(
  self: Feature,
  requires: readonly string[],
  features: readonly ListedFeature[],
): Generator<Mistake> {
  const { name } = self
  for (const other of requires)
    if (!features.some((one) => one.name === other))
      yield mistakeAt(
        'missing_feature',
        ['features'],
        `${name}() needs ${other}(); ${sourceOf(other)}`,
      )
  const earlier: readonly Feature[] = features.slice(0, features.indexOf(self))
  for (const other of earlier) {
    if (other.name === name) {
      const message = `${name} is the name of two features; rename one of them`
      yield mistakeAt('duplicate', ['features'], message)
      continue
    }
    const slots = {
      problems: [self.problems, other.problems],
      metrics: [self.metrics, other.metrics],
      variables: [self.variables?.shape, other.variables?.shape],
    } as const
    for (const [slot, [own = {}, others = {}]] of Object.entries(slots))
      for (const shared of Object.keys(own))
        if (Object.hasOwn(others, shared))
          yield mistakeAt(
            'duplicate',
            ['features', name, slot, shared],
            `${other.name}() declares it as well`,
          )
  }
}

type Reason = Denial['code'] | OAuthErrorCode | Dependency
/** The codes of features have an underscore. */
type Reserved = Exclude<Extract<Reason, `${string}_${string}`>, ProblemCode>

/** Where the reason in an audit event begins with another word than the code of the problem. */
const REASONS: Readonly<Record<Reserved, true>> = {
  access_denied: true,
  audit_log: true,
  call_refused: true,
  consent_required: true,
  identity_provider: true,
  invalid_client: true,
  invalid_client_metadata: true,
  invalid_grant: true,
  invalid_redirect_uri: true,
  invalid_request: true,
  invalid_request_uri: true,
  invalid_scope: true,
  invalid_target: true,
  key_set: true,
  login_required: true,
  unmet_authentication_requirements: true,
  oauth_refused: true,
  permission_missing: true,
  refused_by_feature: true,
  relation_missing: true,
  relation_unknown: true,
  request_not_supported: true,
  signature_matched: true,
  signing_keys: true,
  token_rejected: true,
  token_revoked: true,
  unauthorized_client: true,
  unsupported_grant_type: true,
  unsupported_response_type: true,
  unsupported_token_type: true,
}

/** Reports whether a caller, or an alert on audit events, would take the code for that of the gateway. */
const isReservedCode = (code: string): boolean =>
  isProblemCode(code) || Object.hasOwn(REASONS, code) || code === 'stream_ended'
