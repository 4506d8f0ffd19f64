/** Records the stages that a request passes, and describes what each of them read and decided. */
import type { Context } from 'hono'
import type { AuditEvent } from '../../audit/event.ts'
import { reasonOf } from '../../audit/reason.ts'
import { Denied } from '../../errors.ts'
import type { GatewayVariables } from '../../middleware/context.ts'
import type { StageObserver } from '../../middleware/in-order.ts'
import type { Policy } from '../../policy/policy.ts'
import type { ExplainedStage, StageOutcome } from './explanation.ts'
import { readBy, whyPassed, whyRefused } from './stage-descriptions.ts'

export interface StageRecorder {
  /** For `createGateway`. */
  readonly observe: StageObserver
  /** Removes and returns the stages of the request that an event is about. */
  take(event: Pick<AuditEvent, 'requestId' | 'decision' | 'reason'>): readonly ExplainedStage[]
}

/** The pipeline has no stage for the route table. */
const ROUTE_STAGE = 'route'

type Observed = Context<{ Variables: GatewayVariables }>
type Entry = { -readonly [Name in keyof ExplainedStage]: ExplainedStage[Name] }

/** Creates the recorder of the gateway of a policy. It keeps stages until {@link StageRecorder.take}. */
export function createStageRecorder(policy: Policy): StageRecorder {
  const requests = new Map<string, Entry[]>()

  function entriesOf(c: Observed): Entry[] {
    const id = c.get('portcullis.requestId')
    const known = requests.get(id) ?? []
    requests.set(id, known)
    return known
  }

  /** Adds the entry of the route table as soon as a route has matched. */
  function addRoute(c: Observed, entries: Entry[]): void {
    const route = c.get('portcullis.route')
    if (route === undefined || entries.some(({ stage }) => stage === ROUTE_STAGE)) return
    entries.push({
      stage: ROUTE_STAGE,
      outcome: 'passed',
      read: { method: c.req.method, path: c.req.path, route: route.path },
      why: 'the first row of the policy with this method and path decides',
    })
  }

  return {
    observe: (stage, middleware, describe) =>
      async function observeStage(context, next) {
        const c = context as Observed
        const entries = entriesOf(c)
        addRoute(c, entries)
        const entry: Entry = { stage, outcome: 'passed', read: {}, why: '' }
        entries.push(entry)
        const conclude = (outcome: StageOutcome, why: string) =>
          Object.assign(entry, {
            outcome,
            read: describe === undefined ? readBy(stage, c, policy) : (describe(c).read ?? {}),
            why,
          })
        try {
          const answer = await middleware(context, () => {
            conclude('passed', describe?.(c).why ?? whyPassed(stage, c, policy))
            return next()
          })
          if (answer instanceof Response)
            conclude('answered', 'the request goes to the origin, with the identity of the caller')
          return answer
        } catch (error) {
          conclude(
            error instanceof Denied ? 'refused' : 'failed',
            error instanceof Denied ? whyRefused(error.denial, c, policy) : reasonOf(error, stage),
          )
          throw error
        }
      },

    take({ requestId, decision, reason }) {
      const stages = requests.get(requestId) ?? []
      requests.delete(requestId)
      if (decision === 'allow' || stages.some(({ outcome }) => outcome !== 'passed')) return stages
      // The request was refused between two stages: by the route table, or by a look-alike route.
      const others = stages.filter(({ stage }) => stage !== ROUTE_STAGE)
      const read = stages.find(({ stage }) => stage === ROUTE_STAGE)?.read ?? {}
      return [...others, { stage: ROUTE_STAGE, outcome: 'refused', read, why: whyOf(reason) }]
    },
  }
}

const ROUTE_REASONS: Readonly<Record<string, string>> = {
  not_found: 'no route of the policy has this path',
  method_not_allowed: 'routes of the policy have this path, but not this method',
}

const whyOf = (reason: string): string =>
  ROUTE_REASONS[reason] ??
  (reason.startsWith('ambiguous_path')
    ? `the origin could read this path as one of another route with other requirements (${reason})`
    : reason)
