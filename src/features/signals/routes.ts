/** The push receiver (RFC 8935): `POST /-/signals/events`. */
import type { Context, Hono, MiddlewareHandler } from 'hono'
import { MAX_TOKEN_BYTES } from '../../access/tokens/jws.ts'
import { equalHashes } from '../../crypto/equal-hashes.ts'
import { sha256 } from '../../crypto/sha256.ts'
import { Denied } from '../../errors.ts'
import { NO_STORE } from '../../http/response-headers.ts'
import { createApp } from '../../http/router.ts'
import {
  bodyOf,
  type GatewayVariables,
  recordField,
  waitUntilOf,
} from '../../middleware/context.ts'
import { stage } from '../../middleware/in-order.ts'
import { limitBody } from '../../middleware/limit-body.ts'
import { receivedHeaders } from '../../middleware/request-headers.ts'
import { readWhole } from '../../middleware/validate.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import { completeRoute } from '../../policy/route.ts'
import type { Operation } from '../../routes/operation.ts'
import { eventFields } from './event-fields.ts'
import type { Receiver } from './receiver.ts'
import { setErrorOf, signalRefused } from './refused.ts'
import { SECURITY_EVENT_TYPE } from './security-event.ts'
import type { Transmitter } from './transmitter.ts'

const EVENTS_PATH = '/-/signals/events'

type Environment = { Variables: GatewayVariables }

export interface SignalRoutesOptions {
  readonly receiver: Receiver
  /** Admits requests by their address. */
  readonly admitTransmitter: MiddlewareHandler
  readonly limits: readonly PolicyLimit[]
  /** Counts what became of an event, or its refusal. */
  readonly count: (transmitter: string | undefined, outcome: string) => void
}

const READ_TIMEOUT_MS = 3_000
const MEDIA_TYPE = new RegExp(
  `^application/${SECURITY_EVENT_TYPE.replace('+', '\\+')}[ \\t]*(?:;|$)`,
  'i',
)

/** Creates the receiver. It must come after `audit` and `clientAddress`. */
export function signalRoutes({
  receiver,
  admitTransmitter,
  limits,
  count,
}: SignalRoutesOptions): Hono<Environment> {
  const app = createApp<Environment>()
  const route = completeRoute({ method: 'POST', path: EVENTS_PATH, limits })
  app.onError((error) => {
    const status = statusOf(error)
    // The gateway answers with a problem document.
    if (status === undefined || !(error instanceof Denied)) throw error
    count(undefined, 'refused')
    return new Response(JSON.stringify(setErrorOf(error)), {
      status,
      headers: { ...NO_STORE, 'Content-Type': 'application/json', 'Content-Language': 'en' },
    })
  })

  async function receive(c: Context<Environment>): Promise<Response> {
    const headers = receivedHeaders(c)
    if (!MEDIA_TYPE.test(headers.get('content-type') ?? ''))
      throw new Denied({
        code: 'unsupported_media_type',
        expected: `application/${SECURITY_EVENT_TYPE}`,
        encoded: headers.has('content-encoding'),
      })
    const text = new TextDecoder().decode(await readWhole(bodyOf(c), READ_TIMEOUT_MS))
    const authorization = headers.get('authorization')
    const reception = await receiver.receive(
      text.trim(),
      (transmitter) => requireAuthorization(transmitter, authorization),
      waitUntilOf(c),
    )
    for (const { outcome } of reception.events) count(reception.transmitter, outcome)
    for (const [name, value] of Object.entries(eventFields(reception))) recordField(c, name, value)
    return c.body(null, 202, NO_STORE)
  }

  app.all(EVENTS_PATH, (c, next) => {
    c.set('portcullis.route', route)
    c.set('portcullis.principal', null)
    return next()
  })
  app.post(
    EVENTS_PATH,
    stage('limitBody', limitBody({ maxBytes: MAX_TOKEN_BYTES })),
    stage('admit', admitTransmitter),
    stage('signals', receive),
  )
  app.all(EVENTS_PATH, async function refuseMethod() {
    throw new Denied({ code: 'method_not_allowed', allow: ['POST'] })
  })
  return app
}

/** Throws `Denied` unless the request has the value that the transmitter must send. Constant time. */
async function requireAuthorization(
  { authorization }: Transmitter,
  received: string | undefined,
): Promise<void> {
  if (authorization === undefined) return
  const [expected, given] = await Promise.all([sha256(authorization), sha256(received ?? '')])
  if (!equalHashes(expected, given)) throw signalRefused('authorization')
}

/** Returns the status of a refusal in the form of RFC 8935. Undefined: it has another form. */
function statusOf(error: Error): number | undefined {
  if (!(error instanceof Denied)) return undefined
  switch (error.denial.code) {
    case 'refused_by_feature':
    case 'malformed_request':
      return 400
    case 'payload_too_large':
      return 413
    case 'unsupported_media_type':
      return 415
    default:
      return undefined
  }
}

/** Describes the receiver for the OpenAPI document. */
export const signalOperations = (): readonly Operation[] => [
  {
    method: 'POST',
    path: EVENTS_PATH,
    id: 'receiveSecurityEvent',
    tag: 'Shared signals',
    summary: 'Receive a security event',
    description:
      'The body is a security event token (RFC 8417), sent by a transmitter (RFC 8935). Its signature ' +
      'authenticates the transmitter. A refusal has the form of RFC 8935: `err` and `description`.',
    responses: { 202: { description: 'The effects of the event are in force.' } },
    problems: [400, 405, 413, 415, 429, 500, 503],
  },
]
