/** Several origins behind one gateway: `import { origins } from 'portcullis/origins'`. */
import { Misconfigured } from '../../errors.ts'
import type { ConnectedOrigin, Connections } from '../../gateway/core.ts'
import type { Contribution, Feature } from '../../gateway/feature.ts'
import type { OriginDefinition } from '../../origin/definition.ts'
import { type Fetches, type OriginOptions, parseBase } from '../../origin/origin.ts'
import { createLocate, type Locate } from '../../origin/public-location.ts'
import type { OriginsFeature, PolicyOrigins } from '../../policy/origins.ts'
import { nameOfRoute, type PolicyRoute } from '../../policy/route.ts'
import { type Mistake, mistakeAt } from '../../problems/mistake.ts'
import { isWithheld } from '../../routes/origin-response.ts'
import { parseConfiguration } from '../../validators/configuration.ts'
import { type EnvironmentCheck, failing } from '../../validators/environment.ts'
import { withoutIssuer } from './audiences.ts'
import { routesByHost } from './by-host.ts'
import { isInCanary } from './canary.ts'
import { createPublicPlaces } from './public-place.ts'
import { requireAudience } from './require-audience.ts'
import { retriedOrigin } from './retried-origin.ts'
import { type Destination, routedOrigin } from './routed-origin.ts'
import { routingCheck, unknownOrigin } from './routing-mistakes.ts'
import { originsSchema, originVariable } from './schema.ts'

export type {
  CanaryDefinition,
  HeaderChanges,
  OriginDefinition,
  RetryDefinition,
} from '../../origin/definition.ts'
export type { OriginsFeature }

type Definitions = Readonly<Record<string, OriginDefinition>>

/**
 * Returns the origins of a policy, for its field `origins`. Routes name them in their field `origin`.
 *
 * @example
 * ```ts
 * origins: origins({
 *   orders: { variable: 'ORIGIN_URL_ORDERS' },
 *   search: { binding: 'SEARCH', timeoutMs: 2_000, retries: {} },
 * })
 * ```
 */
export function origins<const OriginName extends string>(
  definitions: Readonly<Record<OriginName, OriginDefinition>>,
): OriginsFeature<OriginName> {
  return {
    feature: 'origins',
    names: Object.keys(definitions) as OriginName[],
    compile: () => compiled(definitions),
  }
}

function compiled(definitions: Definitions): PolicyOrigins {
  parseConfiguration('The policy', originsSchema, definitions, ['origins'])
  const mistakes = [...mistakesInOrigins(definitions)]
  if (mistakes.length > 0) throw new Misconfigured('The policy', mistakes)
  const byName = new Map(Object.entries(definitions))
  const feature: Feature = {
    name: 'origins',
    checksOf(environment) {
      const checks: EnvironmentCheck[] = []
      for (const [name, definition] of byName) {
        const { credentials } = definition
        for (const [variable, message] of [
          ...mistakesInVariables(name, definition, environment),
          ...(credentials?.mistakesIn(environment) ?? []),
        ])
          checks.push(failing(variable, message))
      }
      return checks
    },
    guard: ({ policy, environment }) => createContribution(byName, policy.routes, environment),
  }
  return {
    by: feature,
    mistakesIn: routingCheck({ origins: byName, isWithheld }),
    credentialsOf: ({ origin = '' }) => byName.get(origin)?.credentials,
    defaultsOf({ origin = '' }) {
      const timeoutMs = byName.get(origin)?.timeoutMs
      return timeoutMs === undefined ? {} : { originTimeoutMs: timeoutMs }
    },
  }
}

function* mistakesInOrigins(definitions: Definitions): Generator<Mistake> {
  const names = Object.keys(definitions)
  for (const [name, { canary }] of Object.entries(definitions)) {
    if (canary === undefined) continue
    const place = ['origins', name, 'canary', 'origin']
    const target = names.includes(canary.origin) ? definitions[canary.origin] : undefined
    if (target === undefined) yield unknownOrigin(place, canary.origin, names)
    else if (target.canary !== undefined)
      yield mistakeAt('conflict', place, `${canary.origin} has a canary itself`)
  }
}

function* mistakesInVariables(
  name: string,
  { url, variable, binding }: OriginDefinition,
  environment: Connections['environment'],
): Generator<readonly [name: string, message: string]> {
  const given = variable === undefined ? undefined : environment[variable]
  if (variable !== undefined && given !== undefined) {
    const { error } = originVariable.safeParse(given)
    const [issue] = error?.issues ?? []
    if (issue !== undefined) yield [variable, issue.message]
    return
  }
  if (url !== undefined) return
  const bound = binding === undefined ? undefined : environment[binding]
  if (typeof bound === 'object' && bound !== null) return
  if (binding === undefined)
    yield [variable ?? '', `is missing; it is the URL of the origin ${name}`]
  else {
    const otherwise = variable === undefined ? 'give the origin a URL' : `set ${variable}`
    yield [binding, `is missing; bind the Worker of the origin ${name}, or ${otherwise}`]
  }
}

function createContribution(
  byName: ReadonlyMap<string, OriginDefinition>,
  routes: readonly PolicyRoute[],
  environment: Connections['environment'],
): Contribution {
  refuseSharedAudiences(byName, environment)
  for (const route of withoutIssuer(routes, environment))
    console.warn(
      `${nameOfRoute(route)}: no entry of ISSUERS has the audience ${route.audience}, which the route requires`,
    )
  return {
    connect: (connections) => connected(byName, connections, routes),
    stagesOf(route) {
      const { audience, origin = '' } = route
      const canary = byName.get(origin)?.canary
      return {
        admitted: audience === undefined ? [] : [requireAudience({ audience })],
        originOf:
          canary &&
          ((request) => (isInCanary(request, origin, canary.percent) ? canary.origin : origin)),
      }
    },
    dispatch: (appOf) => routesByHost(routes, appOf),
  }
}

function connected(
  byName: ReadonlyMap<string, OriginDefinition>,
  { environment, connect, assertionsFor, connectDefault, authorize }: Connections,
  routes: readonly PolicyRoute[],
): ConnectedOrigin {
  function createDestination(name: string, definition: OriginDefinition): Destination {
    const { breaker, retries, credentials } = definition
    const breakerFor = (route: string | undefined) =>
      breaker === 'origin' ? name : `${name} ${route}`
    const origin = connect(locateOrigin(definition, environment), { breakerFor })
    const repeated = retries === undefined ? origin : retriedOrigin({ ...retries, origin })
    return {
      origin: (credentials && authorize?.(credentials)(repeated)) ?? repeated,
      assertions: assertionsFor(audienceOf(name, definition, environment)),
    }
  }

  const plain = new Map([...byName].map(([name, each]) => [name, createDestination(name, each)]))
  const destinations = new Map<string | undefined, Destination>()
  const withoutName = routes.some(({ origin }) => origin === undefined)
    ? connectDefault()
    : undefined
  if (withoutName !== undefined) destinations.set(undefined, withoutName)
  const bases = new Map<string | undefined, string | undefined>([[undefined, withoutName?.base]])
  for (const [name, each] of byName) bases.set(name, parseBase(locateOrigin(each, environment).url))
  for (const [name, { canary }] of byName) {
    const destination = found(plain.get(name))
    destinations.set(
      name,
      canary === undefined
        ? destination
        : {
            ...destination,
            canary: { name, percent: canary.percent, to: found(plain.get(canary.origin)) },
          },
    )
  }
  return {
    origin: routedOrigin({
      routes: new Map(
        routes.map((routing) => [
          nameOfRoute(routing),
          { to: found(destinations.get(routing.origin)), routing },
        ]),
      ),
    }),
    assertions: undefined,
    locateFor: (route) => locateFor(route, { routes, byName, bases }),
  }
}

interface Located {
  readonly routes: readonly PolicyRoute[]
  readonly byName: ReadonlyMap<string, OriginDefinition>
  /** Base URLs by name. */
  readonly bases: ReadonlyMap<string | undefined, string | undefined>
}

/** Only the origin that has answered counts: that of the route, or its canary. */
function locateFor(own: PolicyRoute, { routes, byName, bases }: Located): Locate {
  const canaryOf = (name = '') => byName.get(name)?.canary?.origin
  const isOwn = (name: string | undefined) =>
    name === own.origin || (name !== undefined && name === canaryOf(own.origin))
  const locateOrigin = createPublicPlaces(
    own,
    routes.filter(({ origin }) => isOwn(origin)),
  )
  return createLocate(
    [...bases].flatMap(([name, base]) =>
      base !== undefined && isOwn(name) ? [{ base, placeOf: locateOrigin }] : [],
    ),
  )
}

/** The value of the variable takes precedence, then the URL, then the binding. */
function locateOrigin(
  { url, variable = '', binding = '' }: OriginDefinition,
  environment: Connections['environment'],
): OriginOptions {
  const given = (environment[variable] as string | undefined) ?? url
  return given === undefined ? { binding: environment[binding] as Fetches } : { url: given }
}

function audienceOf(
  name: string,
  definition: OriginDefinition,
  environment: Connections['environment'],
): string {
  const { url } = locateOrigin(definition, environment)
  return (
    definition.audience ??
    (url === undefined ? `urn:portcullis:origin:${name}` : new URL(url).origin)
  )
}

/** One of two origins with the same audience could use the assertions of the other one. */
function refuseSharedAudiences(
  byName: ReadonlyMap<string, OriginDefinition>,
  environment: Connections['environment'],
): void {
  const owners = new Map<string, string>()
  const mistakes: Mistake[] = []
  for (const [name, definition] of byName) {
    const audience = audienceOf(name, definition, environment)
    const other = owners.get(audience)
    owners.set(audience, name)
    if (other === undefined) continue
    const isMeant = definition.audience !== undefined && byName.get(other)?.audience !== undefined
    if (!isMeant)
      mistakes.push(
        mistakeAt(
          'duplicate',
          ['origins', name, 'audience'],
          `must be set, because the origin ${other} has the same audience ${audience}`,
        ),
      )
  }
  if (mistakes.length > 0) throw new Misconfigured('The policy', mistakes)
}

function found<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('an origin that the checks have found is missing')
  return value
}
