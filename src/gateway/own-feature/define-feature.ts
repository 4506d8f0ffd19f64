/** Defines a feature that a user writes. */
import type { Context } from 'hono'
import { Denied, Misconfigured } from '../../errors.ts'
import { recordField } from '../../middleware/context.ts'
import type { FeatureMetric } from '../../observability/metrics/catalogue.ts'
import type { RouteDefinition } from '../../policy/definition.ts'
import type { Policy, PolicyRoute } from '../../policy/policy.ts'
import { mistakeAt } from '../../problems/mistake.ts'
import { keyPart } from '../../redis/key-part.ts'
import { featureKeys } from '../../redis/keys.ts'
import { readResult } from '../../redis/reply.ts'
import { type FeatureVariables, readVariables } from '../../validators/environment.ts'
import type { Contribution, Feature, FeatureParts, RouteStages } from '../feature.ts'
import { conflictsOf, refuseMistakes } from './checked-definition.ts'
import type {
  CreatedFeature,
  Declared,
  FeatureMetricDeclaration,
  FeatureStages,
  OwnFeatureParts,
} from './declaration.ts'
import { kebab } from './names.ts'
import { mistakesInLimits, ownCalls, ownRoutes, rowOf, rowOfCall } from './own-routes.ts'
import { atStart, ownStage } from './own-stages.ts'

type None = Readonly<Record<never, never>>

/** What {@link defineFeature} accepts. Every member but `name` and `create` is optional. */
export interface FeatureDefinition<Own extends Declared> {
  /** In camel case, such as `frontDoor`: the name of its function. */
  readonly name: string
  /** Names of other features of the policy's list that it needs, such as `operators`. */
  readonly requires?: readonly string[]
  /** Variables by name, with zod schemas that parse text. Names begin with `FRONT_DOOR_`. */
  readonly variables?: Own['variables']
  /** Problems by code. Codes begin with `front_door_`. */
  readonly problems?: Own['problems']
  /** Counters by name. Names begin with `front_door_` and end with `_total`. */
  readonly metrics?: Own['metrics']
  /** Names of fields of audit events, at most 8. Events have them as `frontDoor.<name>`. */
  readonly auditFields?: readonly Own['auditField'][]
  /** What each kind of key holds, and for how long, by name. */
  readonly keys?: Readonly<Record<Own['key'], string>>
  /** Calls of operators, by id. */
  readonly operatorCalls?: Own['operatorCalls']
  /** Routes of its own, by id. */
  readonly routes?: Own['routes']
  /** Yields mistakes in the routes of a policy. They refuse the policy. */
  mistakesIn?(routes: readonly Partial<RouteDefinition>[]): Iterable<string>
  /**
   * Creates the feature, once for each isolate. An error that it throws refuses all traffic, and is logged with
   * its message. It must not be async: nothing may wait at the start of a Worker.
   */
  create(parts: OwnFeatureParts<Own>): CreatedFeature<Own>
}

/**
 * Defines a feature for the policy's `features`. Experimental: its form may change in any version.
 *
 * The definition is checked at once, and with the other features when the policy is checked. Throws
 * `Misconfigured`, which lists all mistakes. What it declares appears in `policy matrix`, `explain`, `doctor`, the
 * OpenAPI description, audit events and `/-/metrics`.
 *
 * Does NOT check what the code of the feature does: it runs with the rights of the gateway. It does not run in tests of
 * policies, which have neither Redis nor network.
 *
 * @example
 * ```ts
 * export const frontDoor = () =>
 *   defineFeature({
 *     name: 'frontDoor',
 *     problems: { front_door_closed: { status: 423, title: 'Closed' } },
 *     create: ({ refusal }) => ({
 *       stagesOf: () => ({
 *         admitted: {
 *           run() {
 *             throw refusal('front_door_closed', 'The door is closed.')
 *           },
 *         },
 *       }),
 *     }),
 *   })
 * ```
 */
export function defineFeature<
  const Variables extends Declared['variables'] = None,
  const Problems extends Declared['problems'] = None,
  const Metrics extends Declared['metrics'] = None,
  const AuditField extends string = never,
  const Key extends string = never,
  const Calls extends Declared['operatorCalls'] = None,
  const Routes extends Declared['routes'] = None,
>(
  definition: FeatureDefinition<{
    readonly variables: Variables
    readonly problems: Problems
    readonly metrics: Metrics
    readonly auditField: AuditField
    readonly key: Key
    readonly operatorCalls: Calls
    readonly routes: Routes
  }>,
): Feature
export function defineFeature(definition: AnyDefinition): Feature {
  refuseMistakes(definition)
  const { name, requires = [], problems = {} } = definition
  const { metrics = {}, routes = {}, operatorCalls = {} } = definition
  const keys = Object.keys(definition.keys ?? {})
  const variables: FeatureVariables = { shape: definition.variables ?? {} }

  const self: Feature = {
    name,
    ...(definition.variables && { variables }),
    problems,
    metrics: Object.fromEntries(Object.entries(metrics).map(([id, one]) => [id, metricOf(one)])),
    keys: keys.map((key) => featureKeys({ prefix: '' }, kebab(name)) + key),
    permissions: Object.values(operatorCalls).map(({ permission }) => permission),
    routesIn: (policy) => [
      ...Object.values(routes).map((route) => rowOf(route, policy)),
      ...Object.values(operatorCalls).map(rowOfCall),
    ],
    *conflictsIn(features, ofPolicy) {
      yield* conflictsOf(self, requires, features)
      const own = () => [...(definition.mistakesIn?.(ofPolicy) ?? [])]
      for (const message of atStart(name, 'mistakesIn', own))
        yield mistakeAt('conflict', ['features', name], message)
    },
    create(parts) {
      const mistakes = [...mistakesInLimits(name, routes, parts.policy)]
      if (mistakes.length > 0) throw new Misconfigured('The policy', mistakes)
      const created = atStart(name, 'create', () =>
        definition.create(partsOf(parts, definition, variables)),
      )
      refuseIncomplete(definition, created)
      return contributionOf(definition, created, parts.policy)
    },
  }
  return self
}

interface AnyCreated {
  readonly operatorCalls?: Parameters<typeof ownCalls>[2]
  readonly routes?: Parameters<typeof ownRoutes>[2]
  stagesOf?(route: PolicyRoute, how: { readonly explains: boolean }): FeatureStages | undefined
}

/** The definition of any feature, without the types that its declarations give to its code. */
interface AnyDefinition extends Omit<FeatureDefinition<Declared>, 'create'> {
  create(parts: OwnFeatureParts<Declared>): AnyCreated
}

function metricOf({ help, labels = {} }: FeatureMetricDeclaration): FeatureMetric {
  const series = Object.values(labels).reduce<readonly (readonly string[])[]>(
    (all, values) => all.flatMap((one) => values.map((value) => [...one, value])),
    [[]],
  )
  return { kind: 'counter', labels: Object.keys(labels), help, series }
}

function partsOf(
  { config, publicUrl, redis, fetchPublic, now, counter }: FeatureParts,
  { name, problems = {}, metrics = {}, auditFields = [] }: AnyDefinition,
  variables: FeatureVariables,
): OwnFeatureParts<Declared> {
  return {
    variables: readVariables(config, variables),
    publicUrl,
    redis: async (...commands) => (await redis.send(commands)).map(readResult),
    async key(key, ...parts) {
      const encoded = await Promise.all(parts.map((part) => keyPart(part)))
      return [featureKeys(redis.keys, kebab(name)) + key, ...encoded].join(':')
    },
    metrics: Object.fromEntries(
      Object.entries(metrics).map(([metric, { labels = {} }]) => {
        const counters = new Map<string, (amount: number) => void>()
        return [
          metric,
          {
            add(of: Readonly<Record<string, string>> = {}, amount = 1) {
              const values = Object.keys(labels).map((label) => of[label] ?? '')
              const isKnown = Object.values(labels).every((all, at) =>
                all.includes(values[at] ?? ''),
              )
              if (!isKnown) throw new TypeError(`${metric}: unknown value of a label`)
              const series = values.join(' ')
              const add = counters.get(series) ?? counter(metric, values)
              counters.set(series, add)
              add(amount)
            },
          },
        ]
      }),
    ),
    refusal(code, detail, { headers, check } = {}) {
      const declared = problems[code]
      if (declared === undefined) throw new TypeError(`unknown problem ${code}`)
      if (check !== undefined && !/^[a-z0-9_]{1,64}$/.test(check))
        throw new TypeError(`${code}: invalid check`)
      return new Denied({
        code: 'refused_by_feature',
        problem: { code, ...declared },
        detail,
        ...(headers && { headers }),
        ...(check !== undefined && { check }),
      })
    },
    record(c: Context, field, value) {
      if (!auditFields.includes(field)) throw new TypeError(`unknown audit field ${field}`)
      recordField(c, `${name}.${field}`, value)
    },
    fetchPublic,
    now,
  }
}

/** Throws `Misconfigured` if something is declared, and not created. */
function refuseIncomplete(definition: AnyDefinition, created: unknown): void {
  const { name } = definition
  const incomplete = (mistake: string) =>
    new Misconfigured('The policy', [`features.${name}.create: ${mistake}`])
  if (typeof created !== 'object' || created === null || created instanceof Promise)
    throw incomplete('must return an object, and not a promise')
  for (const slot of ['operatorCalls', 'routes'] as const) {
    const handlers: unknown = slot in created ? Reflect.get(created, slot) : undefined
    for (const id of Object.keys(definition[slot] ?? {}))
      if (
        typeof handlers !== 'object' ||
        handlers === null ||
        !isFunction(Reflect.get(handlers, id))
      )
        throw incomplete(`${slot}.${id} must be a function`)
  }
  if ('stagesOf' in created && created.stagesOf !== undefined && !isFunction(created.stagesOf))
    throw incomplete('stagesOf must be a function')
}

const isFunction = (value: unknown): boolean => typeof value === 'function'
const POSITIONS = ['arrival', 'admitted', 'response'] as const

function contributionOf(
  { name, problems = {}, routes = {}, operatorCalls = {} }: AnyDefinition,
  created: AnyCreated,
  policy: Policy,
): Contribution {
  return {
    operatorCalls: [ownCalls(name, { operatorCalls, problems }, created.operatorCalls ?? {})],
    calls: () => ownRoutes(name, { routes, problems }, created.routes ?? {}, policy),
    stagesOf(route, { explains, watchOwn }): RouteStages | undefined {
      const stages = atStart(name, 'stagesOf', () => created.stagesOf?.(route, { explains }))
      if (stages === undefined) return undefined
      for (const [position, one] of Object.entries(stages)) {
        const isKnown = POSITIONS.some((known) => known === position)
        if (!isKnown || (one !== undefined && !isFunction(one.run)))
          throw new Misconfigured('The policy', [
            `features.${name}.stagesOf: ${position}: ${isKnown ? 'run must be a function' : `must be ${POSITIONS.join(', ')}`}`,
          ])
      }
      return Object.fromEntries(
        POSITIONS.flatMap((position) => {
          const one = stages[position]
          return one === undefined ? [] : [[position, [ownStage(name, one, watchOwn)]]]
        }),
      )
    },
  }
}
