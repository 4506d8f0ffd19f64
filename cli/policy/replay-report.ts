/** Counts what a replay finds, in bounded memory. */
import { counted, type Style, visible } from '../text.ts'
import type { Grants, Prediction } from './replay-decide.ts'
import type { ReplayedEvent } from './replay-input.ts'

/** What a replay decides again. */
const REPLAYED_STAGES = [
  'the route table: host, path and method (404, 405), and look-alikes in case or trailing slash',
  'whether a credential is required',
  'the permission of the route, by roles and scopes',
] as const
/** What an event has no data for. */
const NOT_REPLAYED_STAGES = [
  'limits, plans, bans and the throttle',
  'tokens, revocations, audiences and proofs of possession (DPoP)',
  'relations, unless both policies require the same one',
  'inputs, bodies, inspection and CORS',
  'rules that only observe',
] as const

export interface Change {
  readonly method: string
  readonly route: string | null
  /** The host pattern of the route, if it has one. */
  readonly host?: string
  readonly from: { readonly decision: keyof typeof WAS; readonly reason: string }
  /** A null reason: several stages could be the first to refuse. */
  readonly to: { readonly decision: string; readonly reason: string | null }
  /** Null: anonymous, or not known. */
  readonly roles: readonly string[] | null
  readonly requests: number
  /** Distinct clients and subjects; a lower bound if `isLowerBound`. */
  readonly clients: number
  readonly subjects: number
  readonly isLowerBound: boolean
  /** The subjects with most of the requests, among the first subjects of the change. */
  readonly topSubjects: readonly { readonly subject: string; readonly requests: number }[]
  readonly samples: readonly Sample[]
}

interface Sample {
  readonly requestId: string
  readonly time: string
  readonly subject: string | null
  readonly client: string | null
}

export interface ReplayReport {
  readonly replayed: readonly string[]
  readonly notReplayed: readonly string[]
  readonly events: number
  readonly malformed: number
  /** Operators' calls, and events without a request. No route of a policy decides them. */
  readonly ofGateway: number
  /** Decisions that stay as they are in the replayed stages. */
  readonly same: number
  readonly changed: number
  readonly unknown: number
  readonly changes: readonly Change[]
  /** Changes beyond the largest number of groups, which are only counted. */
  readonly ungrouped: number
  readonly unknowns: readonly { readonly why: string; readonly requests: number }[]
}

export type Tally = ReturnType<typeof createTally>

const MAX_GROUPS = 10_000
const MAX_NAMES = 1_000
const TOP_SUBJECTS = 5
const ANONYMOUS = 'anonymous'

interface Group extends Pick<Change, 'method' | 'route' | 'host' | 'from' | 'to' | 'roles'> {
  requests: number
  readonly samples: Sample[]
  readonly subjects: Map<string, number>
  readonly clients: Map<string, number>
}

export function createTally(limitSamples: number) {
  const groups = new Map<string, Group>()
  const unknowns = new Map<string, number>()
  let [events, malformed, ofGateway, same, changed, unknown, ungrouped] = [0, 0, 0, 0, 0, 0, 0]

  function addChange(
    { method, route, host, decision, reason, actor, requestId, time }: ReplayedEvent,
    grants: Grants | undefined,
    to: Change['to'],
  ): void {
    changed += 1
    const roles = grants?.roles ?? null
    const key = JSON.stringify([method, route, host, decision, reason, to, roles])
    let group = groups.get(key)
    if (group === undefined) {
      if (groups.size >= MAX_GROUPS) {
        ungrouped += 1
        return
      }
      const from = { decision, reason }
      const counters = { subjects: new Map(), clients: new Map() }
      const of = { method, route, ...(host !== undefined && { host }), from, to, roles }
      group = { ...of, requests: 0, samples: [], ...counters }
      groups.set(key, group)
    }
    group.requests += 1
    const { subject, client } = actor
    count(group.subjects, subject ?? ANONYMOUS)
    count(group.clients, client ?? subject ?? ANONYMOUS)
    if (group.samples.length < limitSamples)
      group.samples.push({ requestId, time, subject, client })
  }

  return {
    get events(): number {
      return events
    },
    add(event: ReplayedEvent, grants: Grants | undefined, prediction: Prediction): void {
      events += 1
      if (prediction.decision === 'unknown') {
        unknown += 1
        count(unknowns, prediction.why)
        return
      }
      const { decision, reason } = prediction
      const isSame = decision === event.decision && (reason === null || reason === event.reason)
      if (isSame) same += 1
      else addChange(event, grants, { decision, reason })
    },
    addMalformed(): void {
      malformed += 1
    },
    /** Counts an event that no route of a policy decides. */
    addOfGateway(): void {
      events += 1
      ofGateway += 1
    },
    report: (): ReplayReport => ({
      replayed: REPLAYED_STAGES,
      notReplayed: NOT_REPLAYED_STAGES,
      events,
      malformed,
      ofGateway,
      same,
      changed,
      unknown,
      changes: [...groups.values()].map(changeOf).sort((a, b) => b.requests - a.requests),
      ungrouped,
      unknowns: sorted(unknowns).map(([why, requests]) => ({ why, requests })),
    }),
  }
}

/** Counts a name. Further names are not counted once there are many. */
function count(names: Map<string, number>, name: string): void {
  const before = names.get(name)
  if (before !== undefined || names.size < MAX_NAMES) names.set(name, (before ?? 0) + 1)
}

const sorted = (names: ReadonlyMap<string, number>) =>
  [...names].sort(([, one], [, another]) => another - one)

const changeOf = ({ subjects, clients, ...group }: Group): Change => ({
  ...group,
  clients: clients.size,
  subjects: subjects.size,
  isLowerBound: clients.size >= MAX_NAMES || subjects.size >= MAX_NAMES,
  topSubjects: sorted(subjects)
    .slice(0, TOP_SUBJECTS)
    .map(([subject, requests]) => ({ subject, requests })),
})

const WAS = { allow: 'allowed', deny: 'refused', error: 'not decided' } as const

export function reportText(report: ReplayReport, { colors }: Style): string {
  const { events, malformed, same, changed, unknown } = report
  return [
    'Decided again:',
    ...report.replayed.map((stage) => `  ${stage}`),
    'Not decided again, because events have no data for it:',
    ...report.notReplayed.map((stage) => `  ${stage}`),
    '',
    `${counted(events, 'event')}: ${changed} would change, ${same} stay the same, ${unknown} unknown`,
    ...(report.ofGateway === 0 ? [] : [`${report.ofGateway} are of the gateway itself`]),
    ...(malformed === 0 ? [] : [colors.red(`${counted(malformed, 'line')} malformed, not read`)]),
    ...report.changes.flatMap((change) => ['', ...changeLines(change, colors)]),
    ...(report.ungrouped === 0 ? [] : ['', `${report.ungrouped} further changes are not listed`]),
    ...(report.unknowns.length === 0 ? [] : ['', 'Unknown, because of:']),
    ...report.unknowns.map(({ why, requests }) => `  ${visible(why)}: ${requests}`),
  ].join('\n')
}

function changeLines(change: Change, { yellow, cyan, bold }: Style['colors']): readonly string[] {
  const { requests, clients, from, to, method, host = '', route, roles } = change
  const verb = requests === 1 ? 'was' : 'were'
  const was = `${verb} ${WAS[from.decision]}`
  const is =
    to.decision === 'allow'
      ? 'would be allowed'
      : `would be refused: ${to.reason ?? 'by one of several stages'}`
  const cause = from.decision === 'allow' ? '' : ` (${from.reason})`
  const paint = to.decision === 'allow' ? yellow : cyan
  const least = clients >= MAX_NAMES ? 'at least ' : ''
  const who = change.topSubjects.map(({ subject, requests: of }) => `${subject} (${of})`)
  const held = roles === null ? '' : `, roles ${roles.join(' ') || 'none'}`
  return [
    paint(
      visible(
        `${counted(requests, 'request')} of ${least}${counted(clients, 'client')} that ${was}${cause} ${is}`,
      ),
    ),
    `  ${bold(visible(`${method} ${host}${route}${held}`))}`,
    `  ${visible(`subjects: ${who.join(', ')}`)}`,
    ...change.samples.map(
      ({ requestId, time }) => `  ${visible(`request ${requestId} at ${time}`)}`,
    ),
  ]
}
