/** The changes of a policy outside its routes. */
import type { Policy, PolicyLimit } from '../../src/policy/policy.ts'
import type { Tokens } from '../../src/policy/tokens.ts'
import {
  type Change,
  changeOf,
  changeOfSize,
  changeOfSwitch,
  changeOfValue,
  changesOfMembers,
  isSame,
} from './change.ts'
import { changesInList } from './diff-route.ts'
import { changesInFeatures, changesInSettings } from './diff-settings.ts'
import { limitInWords } from './words.ts'

type Limits = ReadonlyMap<string, PolicyLimit>

/** Yields the changes of limits that both policies have. Routes have those that they gain or lose. */
export function* changesInLimits(before: Limits, after: Limits): Generator<Change> {
  for (const [name, limit] of before) {
    const changed = after.get(name)
    const of = `limits.${name}`
    if (changed === undefined) continue
    const direction = directionOf(limit, changed)
    const text = `${of}: ${limitInWords(limit)} becomes ${limitInWords(changed)}`
    if (direction !== undefined)
      yield changeOf(
        direction === 'tighter' ? 'narrowing' : 'widening',
        of,
        `${text}: ${direction}`,
      )
    if (limit.onUnavailable !== changed.onUnavailable)
      yield changeOf(
        changed.onUnavailable === 'allow' ? 'widening' : 'narrowing',
        of,
        `${of}: onUnavailable is '${changed.onUnavailable}' now`,
      )
    yield* changesInPlans(of, limit.meter, changed.meter)
    for (const field of ['lease', 'engine'] as const)
      yield* changeOfValue(of, field, limit[field], changed[field])
  }
}

/** Yields the changes of the plans of a limit. The units of the default plan are those of the limit. */
function* changesInPlans(
  of: string,
  before: PolicyLimit['meter'],
  after: PolicyLimit['meter'],
): Generator<Change> {
  if (before === undefined || after === undefined) {
    if (before !== after) yield* changeOfValue(of, 'meter', before?.kind, after?.kind)
    return
  }
  const [was, is] = [before.plans, after.plans]
  yield* changeOfValue(of, 'default', was?.defaultPlan, is?.defaultPlan)
  yield* changeOfValue(of, 'planBy', before.planBy, after.planBy)
  for (const plan of new Set([...(was?.units.keys() ?? []), ...(is?.units.keys() ?? [])])) {
    if (plan === was?.defaultPlan && plan === is?.defaultPlan) continue
    const [one, another] = [was, is].map((table) =>
      table?.units.has(plan) === true
        ? (table.units.get(plan) ?? Number.POSITIVE_INFINITY)
        : undefined,
    )
    if (one === undefined || another === undefined)
      yield* changeOfValue(of, `plan ${plan}`, one ?? 'none', another ?? 'none')
    else if (one !== another)
      yield changeOf(
        another > one ? 'widening' : 'narrowing',
        of,
        `${of}: plan ${plan} from ${unitsInWords(one)} to ${unitsInWords(another)}`,
      )
  }
}

const unitsInWords = (units: number) => (Number.isFinite(units) ? units : 'no limit')

/** Undefined: the same. A limit may become larger for one window and smaller for another. */
function directionOf(one: PolicyLimit, another: PolicyLimit): string | undefined {
  const isOther = !isSame(one.by, another.by)
  const differences = [
    another.limit / (another.cost ?? 1) - one.limit / (one.cost ?? 1),
    one.windowSeconds - another.windowSeconds,
    Number(another.mode === 'observe') - Number(one.mode === 'observe'),
  ]
  const isLooser = differences.some((difference) => difference > 0)
  const isTighter = differences.some((difference) => difference < 0)
  if (isOther || (isLooser && isTighter)) return 'neither tighter nor looser for every caller'
  if (isLooser) return 'looser'
  return isTighter ? 'tighter' : undefined
}

/** Bounds that protect the gateway, and change no decision about a caller. */
const BOUNDS = [
  'maxConcurrentRequests',
  'maxOpenResponses',
  'clientStallSeconds',
  'tokenCacheBytes',
] as const

/** Fields that routes, limits or this module compare. */
const COMPARED = new Set([
  ...['roles', 'routes', 'limits', 'features', 'stripHeaders', 'keepHeaders', 'revocation'],
  ...['relations', 'tokens', ...BOUNDS],
])

export function* changesInPolicy(before: Policy, after: Policy): Generator<Change> {
  yield* changesInOperators(before, after)
  yield* changesInFeatures(before, after)
  const staleness = [before, after].map(({ revocation }) => revocation.maxStalenessMs)
  yield* changeOfSize('revocation', 'maxStalenessMs', staleness[0] ?? 0, staleness[1] ?? 0)
  yield* changesInList(
    'keepHeaders',
    'clients may send',
    before.keepHeaders ?? [],
    after.keepHeaders ?? [],
  )
  // A name that is no longer stripped may be sent again.
  yield* changesInList(
    'stripHeaders',
    'clients may send',
    after.stripHeaders ?? [],
    before.stripHeaders ?? [],
  )
  yield* changesInSettings(before, after)
  yield* changesInTokens(before.tokens, after.tokens)
  yield* changesInRelations(before, after)
  yield* changesInCredentials(before, after)
  for (const field of BOUNDS)
    if (before[field] !== after[field])
      yield changeOf('neutral', field, `${field}: from ${before[field]} to ${after[field]}`)
  for (const field of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (COMPARED.has(field)) continue
    const [one, another] = [before[field as keyof Policy], after[field as keyof Policy]]
    yield* changesOfMembers(field, one, another)
  }
}

/** Fields of `tokens` that admit more if they are larger. */
const LIVES = ['accessTokenSeconds', 'refreshGraceSeconds'] as const

function* changesInTokens(before: Tokens, after: Tokens): Generator<Change> {
  for (const field of LIVES) yield* changeOfSize('tokens', field, before[field], after[field], ' s')
  // Proofs without a nonce are what the switch decides about.
  yield* changeOfSwitch(
    'tokens.dpopNonceRequired',
    'DPoP proofs without a nonce are accepted',
    !before.dpopNonceRequired,
    !after.dpopNonceRequired,
  )
  for (const field of ['sessionSeconds', 'exchangeLimits', 'sources'] as const)
    yield* changesOfMembers(`tokens.${field}`, before[field], after[field])
}

/** Roles with permissions of operators have calls that are not in the route table. */
function* changesInOperators(before: Policy, after: Policy): Generator<Change> {
  const grantsOf = ({ roles }: Policy, role: string) =>
    (roles.get(role) ?? []).filter((one) => one === '*' || one.startsWith('portcullis:'))
  for (const role of new Set([...before.roles.keys(), ...after.roles.keys()]))
    yield* changesInList(
      `roles.${role}`,
      'operators with',
      grantsOf(before, role),
      grantsOf(after, role),
    )
}

/** Compares the gateway's own credentials at each origin that routes name. Routes have their own. */
function* changesInCredentials(before: Policy, after: Policy): Generator<Change> {
  const namesOf = ({ routes }: Policy) => routes.flatMap(({ origin }) => origin ?? [])
  const wordsOf = ({ origins }: Policy, origin: string) =>
    origins?.credentialsOf?.({ origin })?.words ?? 'none'
  const others = new Set(namesOf(after))
  for (const origin of new Set(namesOf(before))) {
    // The routes of an origin that is new, or gone, are reported themselves.
    if (!others.has(origin)) continue
    const [was, is] = [wordsOf(before, origin), wordsOf(after, origin)]
    const of = `origins.${origin}`
    if (was !== is)
      yield changeOf('neutral', of, `${of}: credentials at the origin from ${was} to ${is}`)
  }
}

function* changesInRelations(before: Policy, after: Policy): Generator<Change> {
  const [one, another] = [before.relations, after.relations]
  if (one === undefined || another === undefined) return
  yield* changeOfSize('relations', 'maxStalenessMs', one.maxStalenessMs, another.maxStalenessMs)
  for (const field of ['model', 'subject', 'issuers', 'authority'] as const)
    yield* changeOfValue('relations', field, one[field], another[field])
}
