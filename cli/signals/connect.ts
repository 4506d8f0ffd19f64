/** `portcullis signals connect` and `disconnect`. */
import { EVENT_URIS } from '../../src/features/signals/event-types.ts'
import { usage } from '../failure.ts'
import { createOutput } from '../output.ts'
import {
  type ConnectOptions,
  type DisconnectOptions,
  type ReadVariable,
  type Remote,
  remoteOf,
  type Stream,
  variablesOf,
} from './stream.ts'

const METHODS: Readonly<Record<string, string>> = {
  push: 'urn:ietf:rfc:8935',
  poll: 'urn:ietf:rfc:8936',
}
const RECEIVER_PATH = '/-/signals/events'

/**
 * Creates a stream, unless the transmitter has one with the same delivery. Reads it back with its status,
 * and requests a verification event, which the gateway receives and records.
 */
export async function connect(transmitter: string, options: ConnectOptions): Promise<void> {
  const output = createOutput(options.json ?? false)
  const method = METHODS[options.delivery]
  if (method === undefined) throw usage('--delivery must be push or poll')
  const variable = variablesOf(options.values)
  const endpointUrl = options.delivery === 'push' ? receiverUrl(options, variable) : undefined
  const remote = await remoteOf(transmitter, variable)
  const present = (await streamsOf(remote)).find(
    ({ delivery }) =>
      delivery?.method === method &&
      (endpointUrl === undefined || delivery.endpoint_url === endpointUrl),
  )
  const { stream_id: id } = present ?? (await create(remote, method, endpointUrl))
  const stream = (await remote.call('configuration_endpoint', 'GET', undefined, {
    stream_id: id,
  })) as Stream
  const status = await statusOf(remote, id)
  const isVerified = remote.has('verification_endpoint')
  if (isVerified)
    await remote.call('verification_endpoint', 'POST', {
      stream_id: id,
      state: crypto.randomUUID(),
    })
  const answer = {
    stream: id,
    created: present === undefined,
    status,
    audience: stream.aud ?? null,
    events: (stream.events_delivered ?? []).map((uri) => uri.split('/').at(-1)),
    pollUrl: options.delivery === 'poll' ? (stream.delivery?.endpoint_url ?? null) : null,
    verification: isVerified ? 'requested' : 'not offered',
  }
  output.thing(answer)
  for (const line of nextSteps(transmitter, answer)) output.remark(line)
}

/** Deletes a stream. */
export async function disconnect(
  transmitter: string,
  { stream, values, json = false }: DisconnectOptions,
): Promise<void> {
  const remote = await remoteOf(transmitter, variablesOf(values))
  await remote.call('configuration_endpoint', 'DELETE', undefined, { stream_id: stream })
  createOutput(json).thing({ stream, deleted: true })
}

function receiverUrl({ endpoint }: ConnectOptions, variable: ReadVariable): string {
  if (endpoint !== undefined) return endpoint
  const publicUrl = variable('PUBLIC_URL')
  if (publicUrl === undefined)
    throw usage('set PUBLIC_URL, or name the receiver with --endpoint https://…/-/signals/events')
  return publicUrl.replace(/\/+$/, '') + RECEIVER_PATH
}

/** Okta returns one stream without a list, if it has only one. */
async function streamsOf(remote: Remote): Promise<readonly Stream[]> {
  const found = await remote.call('configuration_endpoint', 'GET')
  const list = Array.isArray(found) ? found : [found]
  return list.filter((stream): stream is Stream => typeof stream?.stream_id === 'string')
}

async function create(
  remote: Remote,
  method: string,
  endpointUrl: string | undefined,
): Promise<Stream> {
  const { authorization } = remote.secrets
  const isPushed = endpointUrl !== undefined
  return (await remote.call('configuration_endpoint', 'POST', {
    events_requested: EVENT_URIS,
    delivery: {
      method,
      ...(isPushed && { endpoint_url: endpointUrl }),
      ...(isPushed && authorization !== undefined && { authorization_header: authorization }),
    },
    description: 'Portcullis',
  })) as Stream
}

async function statusOf(remote: Remote, id: string): Promise<unknown> {
  if (!remote.has('status_endpoint')) return null
  const found = await remote.call('status_endpoint', 'GET', undefined, { stream_id: id })
  return 'status' in found ? found.status : null
}

function nextSteps(
  issuer: string,
  { audience, pollUrl }: { readonly audience: unknown; readonly pollUrl: string | null },
): readonly string[] {
  const poll = pollUrl === null ? undefined : { url: pollUrl }
  const known = audience === null ? undefined : audience
  const entry = JSON.stringify({ issuer, audience: known, poll })
  const warning = 'Warning: the stream has no aud. Add audience to the entry: aud of the events.'
  return [
    ...(audience === null ? [warning] : []),
    `In the policy: signals({ transmitters: [${entry}] })`,
    'The gateway records the verification event as signals.outcome: verified in its audit trail.',
  ]
}
