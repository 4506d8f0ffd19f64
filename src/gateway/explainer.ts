/** Explains a decision of the running gateway, with its state, without a change of that state. */
import { createAdmission } from '../admission/admission.ts'
import { readOnlyStore } from '../admission/read-only-store.ts'
import type { AdmissionStore } from '../admission/store.ts'
import type { AuditEvent } from '../audit/event.ts'
import { type Explainer, explanationOf, type ForwardedRequest } from '../explanation/explanation.ts'
import { createStageRecorder } from '../explanation/stage-recorder.ts'
import { createApp } from '../http/router.ts'
import type { GatewayVariables } from '../middleware/context.ts'
import { createOrigin, type Fetches } from '../origin/origin.ts'
import type { Policy, PolicyRoute } from '../policy/policy.ts'
import type { References } from '../tokens/references.ts'
import type { Services } from './compose-services.ts'
import { createGateway } from './create-gateway.ts'
import { type OriginParts, originsOf } from './features.ts'

export interface ExplainerOptions {
  readonly services: Services
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
export function createExplainer({ services, policy, store, signs }: ExplainerOptions): Explainer {
  // Calls of the gateway itself, and exported traces, are not explained.
  const {
    operatorCalls: _,
    authorizationServer: __,
    description: ___,
    spans: ____,
    ...guards
  } = services
  const { now, verifier, failures, signIn } = services
  // A reference that an explanation has resolved is not cached: its first request records its use.
  const references: References = { ...services.references, remember() {} }

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
    const connect: OriginParts['connect'] = ({ url }) => createOrigin({ url, binding: origin })
    const assertionsFor = () => (signs ? { sign: async () => '' } : undefined)
    const unnamed = () => ({ origin: connect({}), assertions: assertionsFor() })
    const parts = { environment: {}, connect, assertionsFor, unnamed }
    const recall: typeof verifier.recall = (token) =>
      caller !== undefined && token === ASSUMED ? caller : verifier.recall(token)
    const gateway = createGateway(
      {
        ...guards,
        references,
        ...(signIn && {
          signIn: {
            ...signIn,
            // Its own paths begin and end sessions.
            routes: createApp<{ Variables: GatewayVariables }>(),
            stagesOf: (route: PolicyRoute) => signIn.stagesOf(route, references),
          },
        }),
        // An assumed caller comes in `Authorization`, whatever the sources of tokens are.
        sources: caller === undefined ? services.sources : undefined,
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
        ...(originsOf(policy)?.services(parts, policy.routes) ?? unnamed()),
        addressOf: () => address,
      },
      policy,
      recorder.watch,
    )
    const sent = caller === undefined ? request : withCredential(request)
    await gateway.fetch(sent)
    if (event !== undefined) refuseActor?.(event.actor)
    return event && explanationOf(event, recorder.take(event), forwarded)
  }
}

function withCredential(request: Request): Request {
  const headers = new Headers(request.headers)
  headers.set('authorization', `Bearer ${ASSUMED}`)
  return new Request(request, { headers })
}
