/** Streams of a transmitter (SSF 1.0 section 8.1). */
import { createAccessToken } from '../../src/features/signals/access-token.ts'
import { configurationUrlOf } from '../../src/features/signals/metadata-url.ts'
import { parseSecrets, type TransmitterSecrets } from '../../src/features/signals/schema.ts'
import { devVarsAround } from '../connection.ts'
import { valuesIn } from '../deploy/values.ts'
import { Failure, refused, undecided, usage } from '../failure.ts'
import { exchange } from '../http.ts'

export interface ConnectOptions {
  readonly json?: boolean
  readonly delivery: string
  readonly endpoint?: string
  readonly values?: string
}

export interface DisconnectOptions {
  readonly json?: boolean
  readonly stream: string
  readonly values?: string
}

export interface Stream {
  readonly stream_id: string
  readonly aud?: string | readonly string[]
  readonly events_delivered?: readonly string[]
  readonly delivery?: { readonly method?: string; readonly endpoint_url?: string }
}

type Members = Readonly<Record<string, unknown>>

/** A transmitter that describes itself, and accepts a token. */
export interface Remote {
  readonly secrets: TransmitterSecrets
  /** Calls an endpoint of the metadata. Throws a `Failure`. */
  call(endpoint: Endpoint, method: string, body?: object, query?: Members): Promise<object>
  /** Reports whether the metadata has an endpoint. */
  has(endpoint: Endpoint): boolean
}

export type Endpoint = 'configuration_endpoint' | 'status_endpoint' | 'verification_endpoint'

/** Returns a variable. An empty one counts as absent. */
export type ReadVariable = (name: 'PUBLIC_URL' | 'SIGNAL_TRANSMITTERS') => string | undefined

/** Reads variables from the environment, or else from the file `values`. Default: from `.dev.vars`. */
export function variablesOf(values: string | undefined): ReadVariable {
  const inFile = values === undefined ? devVarsAround(process.cwd()) : valuesIn(values)
  return (name) => process.env[name] || inFile[name] || undefined
}

/** Reads the metadata of a transmitter. Throws a `Failure` if it is another one. */
export async function remoteOf(issuer: string, variable: ReadVariable): Promise<Remote> {
  const own = secretsOf(issuer, variable)
  const url = metadataUrl(issuer)
  const metadata = (await asked(exchange({ method: 'GET', url }))) as Members
  if (metadata.issuer !== issuer)
    throw refused(
      'other_issuer',
      `${url.href} has the issuer ${JSON.stringify(metadata.issuer)}; use it as <transmitter>`,
    )
  const accessToken = createAccessToken(own, Date.now)

  function urlOf(endpoint: Endpoint): URL {
    const found = metadata[endpoint]
    const target = typeof found === 'string' ? URL.parse(found) : null
    // The token must not go to another host over an open line.
    if (target === null || (target.protocol !== 'https:' && target.hostname !== url.hostname))
      throw refused('no_endpoint', `${issuer} has no usable ${endpoint}`)
    return target
  }

  return {
    secrets: own,
    has: (endpoint) => metadata[endpoint] !== undefined,
    async call(endpoint, method, body, query = {}) {
      const target = urlOf(endpoint)
      for (const [name, value] of Object.entries(query))
        target.searchParams.set(name, String(value))
      const authorization = await asked(accessToken())
      return asked(
        exchange({
          method,
          url: target,
          headers: {
            ...(authorization !== undefined && { Authorization: authorization }),
            ...(body !== undefined && { 'Content-Type': 'application/json' }),
          },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        }),
      )
    },
  }
}

function metadataUrl(issuer: string): URL {
  if (!/^https?:/i.test(issuer) || !URL.canParse(issuer))
    throw usage('<transmitter> must be the URL that is iss of the events')
  return new URL(configurationUrlOf(issuer))
}

function secretsOf(issuer: string, variable: ReadVariable): TransmitterSecrets {
  const text = variable('SIGNAL_TRANSMITTERS')
  if (text === undefined) return { issuer }
  const entries = parseSecrets(text)
  if (entries === undefined)
    throw usage('SIGNAL_TRANSMITTERS is not valid; `portcullis doctor` names the mistake')
  return entries.find((entry) => entry.issuer === issuer) ?? { issuer }
}

/** Replaces the words about gateways in failures of a transmitter. */
async function asked<Answer>(answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof Failure) {
      const [, status] = /status (\d+)/.exec(error.message) ?? []
      const detail =
        status === undefined ? error.message : `the transmitter answered with ${status}`
      throw new Failure(error.exitCode, codeOf(error.code), detail)
    }
    throw undecided('no_token', 'the token endpoint of client gave no token')
  }
}

const codeOf = (code: string): string =>
  code === 'unexpected_answer' ? 'transmitter_refused' : code.replace(/^gateway_/, 'transmitter_')
