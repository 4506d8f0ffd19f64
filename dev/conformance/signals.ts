/** Plans of a receiver of shared signals: the suite is the transmitter, and pushes events to a gateway. */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { signals } from '../../src/features/signals/index.ts'
import { definePolicy } from '../../src/policy/policy.ts'
import { freePort } from '../free-port.ts'
import { startGateway } from './gateway.ts'
import type { ModuleRun, Plan } from './run-plan.ts'
import type { Certificate } from './secure-front.ts'

const ALIAS = 'portcullis-ssf'
const CAEP = 'https://schemas.openid.net/secevent/caep/event-type/'
const RISC = 'https://schemas.openid.net/secevent/risc/event-type/'
/** The event types of `signals()` that the suite can send. */
const REQUESTED = [
  ...['session-revoked', 'credential-change', 'token-claims-change'].map((name) => CAEP + name),
  ...['assurance-level-change', 'device-compliance-change'].map((name) => CAEP + name),
  ...['account-disabled', 'account-enabled', 'account-purged', 'credential-compromise'].map(
    (name) => RISC + name,
  ),
]
const METHODS = { push: 'urn:ietf:rfc:8935', poll: 'urn:ietf:rfc:8936' } as const
const ENDED = ['FINISHED', 'INTERRUPTED']
const POLL_SECONDS = 5
const EVENT_SECONDS = 60

const PLANS = {
  default: { name: 'openid-ssf-receiver-test-plan', title: 'Shared Signals receiver' },
  caep_interop: {
    name: 'openid-ssf-receiver-caep-test-plan',
    title: 'Shared Signals receiver, CAEP interoperability profile',
  },
} as const

/** Creates the plan. The script manages the stream, as an operator does with the transmitter's API. */
export async function createSignalsPlan(
  profile: keyof typeof PLANS,
  deliveryMode: keyof typeof METHODS,
  suiteUrl: string,
  certificate: Certificate,
): Promise<Plan> {
  const port = await freePort()
  const url = `https://localhost:${port}`
  const transmitter = `${suiteUrl}/test/a/${ALIAS}`
  const [accessToken, authorization] = [randomUUID(), `Bearer ${randomUUID()}`]
  /** With a URL, the gateway fetches the events from there. */
  function start(pollUrl?: string) {
    const poll = pollUrl === undefined ? {} : { poll: { url: pollUrl, everySeconds: POLL_SECONDS } }
    const policy = definePolicy({
      roles: { reader: ['orders:read'] },
      limits: {},
      features: [signals({ transmitters: [{ issuer: transmitter, audience: url, ...poll }] })],
      routes: [{ method: 'GET', path: '/orders', permission: 'orders:read' }],
    })
    const secret = pollUrl === undefined ? { authorization } : { accessToken }
    return startGateway({
      ...{ certificate, port, policy },
      variables: {
        ISSUERS: [{ issuer: transmitter, audience: url, jwksUri: `${transmitter}/jwks` }],
        SIGNAL_TRANSMITTERS: [{ issuer: transmitter, ...secret }],
      },
    })
  }

  async function manage(method: string, path: string, body?: object): Promise<StreamReply> {
    const response = await fetch(`${transmitter}/${path}`, {
      method,
      headers: { Authorization: `Bearer ${accessToken}`, 'Content-Type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return text.startsWith('{') ? JSON.parse(text) : {}
  }

  return {
    name: PLANS[profile].name,
    title: `${PLANS[profile].title}, ${deliveryMode}`,
    variant: {
      ssf_delivery_mode: deliveryMode,
      ssf_auth_mode: 'static',
      client_auth_type: 'client_secret_basic',
      ...(profile === 'default' && { ssf_profile: profile }),
    },
    configuration: {
      alias: ALIAS,
      description: 'Portcullis',
      ssf: {
        stream: { audience: url },
        subjects: {
          valid: { format: 'opaque', id: 'valid' },
          invalid: { format: 'opaque', id: 'invalid' },
        },
        transmitter: { access_token: accessToken },
      },
    },
    async act({ module, log, state }: ModuleRun) {
      const delivery = {
        method: METHODS[deliveryMode],
        ...(deliveryMode === 'push' && {
          endpoint_url: `${url}/-/signals/events`,
          authorization_header: authorization,
        }),
      }
      const stream = { delivery, events_requested: REQUESTED, description: 'Portcullis' }
      const isDone = async () => ENDED.includes((await state()).status)
      const isPush = deliveryMode === 'push'
      let close = isPush ? await start() : async () => {}
      try {
        const created = await manage('POST', 'streams', stream)
        const { stream_id } = created
        const query = new URLSearchParams({ stream_id: stream_id ?? '' })
        await manage('GET', `streams?${query}`)
        await manage('GET', `status?${query}`)
        if (module.testModule.includes('happy')) {
          await manage('PATCH', 'streams', { stream_id, description: 'Portcullis gateway' })
          await manage('PUT', 'streams', { stream_id, ...stream })
        }
        if (module.testModule.includes('status'))
          await manage('POST', 'status', { stream_id, status: 'paused', reason: 'maintenance' })
        if (!module.testModule.includes('unsolicited'))
          await manage('POST', 'verify', { stream_id, state: randomUUID() })
        // Later, since the suite fails if it is polled while it handles another call of the stream.
        if (!isPush) close = await start(created.delivery?.endpoint_url)
        // The suite sends one event a second.
        for (let second = 0; second < EVENT_SECONDS && !(await isDone()); second++) {
          const texts = (await log()).map(({ msg }) => msg)
          if (second > 5 && texts.some((text) => text?.startsWith(lastOf(module.testModule)))) break
          await delay(1_000)
        }
        await manage('DELETE', `streams?${query}`)
        for (let second = 0; second < EVENT_SECONDS && !(await isDone()); second++)
          await delay(1_000)
      } finally {
        await close()
      }
    },
    async close() {},
  }
}

interface StreamReply {
  readonly stream_id?: string
  readonly delivery?: { readonly endpoint_url?: string }
}

/** The beginning of the message in the log after which a module needs no further event. */
function lastOf(module: string): string {
  if (module.includes('supported-events')) return 'Detected expected delivery & ack'
  if (module.includes('verification')) return 'Detected Stream Verification'
  // It ends by itself.
  if (module.includes('interop')) return 'Detected all'
  return 'Detected Stream'
}
