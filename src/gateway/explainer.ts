/** Explains a decision of the running gateway, with its state, without a change of that state. */
import { createAdmission } from '../access/admission/admission.ts'
import { readOnlyStore } from '../access/admission/read-only-store.ts'
import type { AdmissionStore } from '../access/admission/store.ts'
import type { References } from '../access/tokens/references.ts'
import type { AuditEvent } from '../audit/event.ts'
import { createOrigin, type Fetches } from '../origin/origin.ts'
import type { Policy } from '../policy/policy.ts'
import { connectOrigins } from './compose-services.ts'
import type { Connections, Core } from './core.ts'
import { createGateway } from './create-gateway.ts'
import {
  createExplanation,
  type Explainer,
  type ForwardedRequest,
} from './explanation/explanation.ts'
import { createStageRecorder } from './explanation/stage-recorder.ts'
import type { Contribution } from './feature.ts'

export interface ExplainerOptions {
  readonly core: Core
  /** What the features add to the running gateway. */
  readonly contributions: readonly Contribution[]
  readonly policy: Policy
  /** The store of the running gateway. */
  readonly store: AdmissionStore
  /** Whether the gateway signs assertions for its origins. */
  readonly signs: boolean
}

/** The credential of a caller that is assumed. Its form is that of a JWT, and no key signs it. */
const ASSUMED = 'e30.e30.AAAA'

/**
 * Creates an explainer. It runs the pipeline of `createGateway` with the services of the gateway, and
 * replaces what would change something: limits are read and not counted, a proof is not used, no use of an
 * API key, no failure and no violation is recorded, no session is renewed, no audit event is sent, no
 * assertion is signed, and the origin is not called. Caches of verified tokens, keys and relations may be
 * filled.
 *
 * Does NOT explain paths of the gateway itself.
 */
export function createExplainer({
  core,
  policy,
  store,
  signs,
  ...options
}: ExplainerOptions): Explainer {
  const { now, verifier, failures } = core
  // Exported traces are not explained.
  const contributions = options.contributions.map(({ traces: _, ...each }) => each)
  // A reference that an explanation has resolved is not cached: its first request records its use.
  const references: References = { ...core.references, remember() {} }

  return async function explain({ request, address, caller, refuseActor }) {
    let event: AuditEvent | undefined
    let forwarded: ForwardedRequest | undefined
    const recorder = createStageRecorder(policy)
    const origin: Fetches = {
      async fetch(url, { method = 'GET', headers }) {
        const path = url.slice(new URL(url).origin.length)
        forwarded = { method, path, headers: Object.fromEntries(new Headers(headers)) }
        return new Response()
      },
    }
    const connect: Connections['connect'] = ({ url }) => createOrigin({ url, binding: origin })
    const assertionsFor = () => (signs ? { sign: async () => '' } : undefined)
    const connectDefault = () => ({ origin: connect({}), assertions: assertionsFor() })
    const connections = { environment: {}, connect, assertionsFor, connectDefault }
    const recall: typeof verifier.recall = (token) =>
      caller !== undefined && token === ASSUMED ? caller : verifier.recall(token)
    const gateway = createGateway(
      {
        ...core,
        contributions,
        explains: true,
        references,
        // An assumed caller comes in `Authorization`, whatever the sources of tokens are.
        sources: caller === undefined ? core.sources : undefined,
        verifier: { ...verifier, recall },
        // A new one for each explanation: it caches refusals.
        admission: createAdmission({
          store: readOnlyStore(store),
          references,
          observesBans: policy.abuse.bans?.mode === 'observe',
          now,
        }),
        failures: failures && {
          mode: failures.mode,
          waitSeconds: failures.waitSeconds,
          waitSecondsOf: failures.waitSecondsOf,
          begin: () => ({ end() {} }),
          record() {},
        },
        violations: undefined,
        auditSink: {
          record(recorded) {
            event = recorded
          },
        },
        ...connectOrigins(contributions, connections),
        addressOf: () => address,
      },
      policy,
      recorder.observe,
    )
    const sent = caller === undefined ? request : withCredential(request)
    await gateway.fetch(sent)
    if (event !== undefined) refuseActor?.(event.actor)
    return event && createExplanation(event, recorder.take(event), forwarded)
  }
}

function withCredential(request: Request): Request {
  const headers = new Headers(request.headers)
  headers.set('authorization', `Bearer ${ASSUMED}`)
  return new Request(request, { headers })
}
