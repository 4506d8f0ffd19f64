/** Client of the operators' API. It uses the login of a person, or requests its own access token and keeps that in memory. */
import { randomBytes } from 'node:crypto'
import type { Connection } from './connection.ts'
import { Failure, REFUSED, refused, usage } from './failure.ts'
import { exchange, WAITING_TIMEOUT_MS } from './http.ts'

const METADATA_PATH = '/.well-known/oauth-authorization-server'
const ADMIN_PATH = '/-/admin'
const TRACE_ID_BYTES = 16
const SPAN_ID_BYTES = 8
/** The token is renewed this long before it expires. */
const RENEW_MS = 30_000
/** The code of a response to a path that does not exist. */
const NOT_FOUND = 'not_found'
const NO_SERVER =
  'the gateway has no authorization server: the command line needs authorizationServer() and ' +
  "operators() in the policy's features, and SIGNING_KEYS"
const NEEDS_CLIENT =
  'this command needs a client with a secret: set PORTCULLIS_CLIENT_ID and PORTCULLIS_CLIENT_SECRET'
const NO_OPERATORS =
  "the gateway has no operators' API: its policy needs operators() in its features; " +
  "import { operators } from 'portcullis/operators'"

/** Collections of features that a policy may lack, and what to do then. Other collections always exist. */
const OPTIONAL: ReadonlyMap<string, string> = new Map([
  [
    '/plans',
    'the gateway has no plans: its policy needs plans() in a field of limits; ' +
      "import { plans } from 'portcullis/plans'",
  ],
  [
    '/mcp',
    'the gateway does not list tools: its policy needs mcp() in its routes, and console() in its features; ' +
      "import { console } from 'portcullis/console'",
  ],
  [
    '/relations',
    'the gateway has no relations: its policy needs relations() in its field relations; ' +
      "import { relations } from 'portcullis/relations'",
  ],
])

export type Query = Readonly<Record<string, string | number | undefined>>

export type Gateway = ReturnType<typeof createGateway>

interface Metadata {
  readonly token_endpoint?: unknown
  readonly introspection_endpoint?: unknown
}

interface TokenAnswer {
  readonly access_token?: unknown
  readonly expires_in?: unknown
}

/**
 * Creates the client. All its requests are in one trace, and lists of the audit trail group them by it. Sends no request before
 * the first call. `signal` aborts calls in progress.
 */
export function createGateway(connection: Connection, signal?: AbortSignal) {
  const requestIds = new Set<string>()
  const traceId = randomBytes(TRACE_ID_BYTES).toString('hex')
  const onRequestId = (id: string) => void requestIds.add(id)
  let metadata: Metadata | undefined
  let token: { readonly value: string; readonly renewAtMs: number } | undefined

  /**
   * Returns the URL of an endpoint. Combines the path from the metadata with the configured origin,
   * because the metadata contains the public URL, which may not be reachable from here.
   */
  async function endpoint(name: keyof Metadata): Promise<URL> {
    metadata ??= await exchange({
      method: 'GET',
      url: new URL(METADATA_PATH, connection.url),
      headers: traced(),
      signal,
      onRequestId,
    }).catch((error: unknown) => {
      throw isNotFound(error) ? new Failure(REFUSED, 'unexpected_answer', NO_SERVER, error) : error
    })
    const named = metadata[name]
    if (typeof named !== 'string' || !URL.canParse(named)) {
      throw refused('unexpected_answer', `the gateway has no ${name}`)
    }
    return new URL(new URL(named).pathname, connection.url)
  }

  /** W3C Trace Context, sampled. */
  const traced = () => ({
    traceparent: `00-${traceId}-${randomBytes(SPAN_ID_BYTES).toString('hex')}-01`,
  })

  async function form(url: URL, fields: Record<string, string>): Promise<object> {
    if ('login' in connection) throw usage(NEEDS_CLIENT)
    return exchange({
      method: 'POST',
      url,
      headers: {
        ...traced(),
        Authorization: basic(connection),
        'Content-Type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams(fields).toString(),
      signal,
      onRequestId,
    })
  }

  async function accessToken(): Promise<string> {
    if ('login' in connection) {
      const { accessTokenFor } = await import('./login/flows.ts')
      return await accessTokenFor(connection.url)
    }
    if (token === undefined || Date.now() >= token.renewAtMs) {
      const answer: TokenAnswer = await form(await endpoint('token_endpoint'), {
        grant_type: 'client_credentials',
      })
      const { access_token: value, expires_in: seconds } = answer
      if (typeof value !== 'string') {
        throw refused('unexpected_answer', 'the gateway returned no access token')
      }
      const lifeMs = typeof seconds === 'number' ? seconds * 1_000 : 0
      token = { value, renewAtMs: Date.now() + lifeMs - RENEW_MS }
    }
    return token.value
  }

  async function call(method: string, path: string, query: Query, body?: object): Promise<object> {
    try {
      return await send(method, path, query, body)
    } catch (error) {
      if (!isNotFound(error)) throw error
      // An unknown id has the same error. `/keys` exists in every gateway with the operators' API.
      if (await isAbsent('/keys')) throw new Failure(REFUSED, NOT_FOUND, NO_OPERATORS, error)
      const missing = await missingFeature(path)
      throw missing === undefined ? error : new Failure(REFUSED, NOT_FOUND, missing, error)
    }
  }

  /** Returns what to do if the gateway lacks the feature of a path. An unknown id has the same error. */
  async function missingFeature(path: string): Promise<string | undefined> {
    const collection = /^\/[a-z-]+/.exec(path)?.[0] ?? ''
    const remedy = OPTIONAL.get(collection)
    return remedy !== undefined && (await isAbsent(collection)) ? remedy : undefined
  }

  const isAbsent = (path: string): Promise<boolean> =>
    send('GET', path, {}).then(() => false, isNotFound)

  async function send(method: string, path: string, query: Query, body?: object): Promise<object> {
    const url = new URL(ADMIN_PATH + path, connection.url)
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value))
    }
    return exchange({
      method,
      url,
      headers: {
        ...traced(),
        Authorization: `Bearer ${await accessToken()}`,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal,
      onRequestId,
      ...(query.wait !== undefined && { timeoutMs: WAITING_TIMEOUT_MS }),
    })
  }

  return {
    /** Ids of the requests of this client, which the audit trail contains as well. */
    requestIds,
    get: async <Answer extends object>(path: string, query: Query = {}): Promise<Answer> =>
      (await call('GET', path, query)) as Answer,
    /** A `query` with `wait` has a longer timeout. */
    post: async <Answer extends object>(
      path: string,
      body: object,
      query: Query = {},
    ): Promise<Answer> => (await call('POST', path, query, body)) as Answer,
    patch: async <Answer extends object>(path: string, body: object): Promise<Answer> =>
      (await call('PATCH', path, {}, body)) as Answer,
    delete: async (path: string, query: Query = {}): Promise<void> =>
      void (await call('DELETE', path, query)),
    /** RFC 7662. */
    introspect: async (value: string): Promise<{ readonly active?: unknown }> =>
      form(await endpoint('introspection_endpoint'), { token: value }),
  }
}

function isNotFound(error: unknown): error is Failure {
  return error instanceof Failure && error.code === NOT_FOUND
}

/**
 * Returns the `Authorization` header. RFC 6749 section 2.3.1: both parts are form-encoded first.
 */
function basic({ clientId, clientSecret }: Exclude<Connection, { login: true }>): string {
  const [id, secret] = [clientId, clientSecret].map((part) =>
    new URLSearchParams([['', part]]).toString().slice(1),
  )
  return `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`
}
