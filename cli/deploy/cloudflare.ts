/** Reads the state of an account with the Cloudflare API. It changes nothing. */

import { Failure, REFUSED, refused, UNDECIDED, undecided } from '../failure.ts'
import { objectIn } from '../json.ts'

const DEFAULT_BASE_URL = 'https://api.cloudflare.com/client/v4'
const TIMEOUT_MS = 20_000
const FIRST_CLIENT_ERROR = 400
const HTTP_UNAUTHORIZED = 401
const HTTP_FORBIDDEN = 403
const HTTP_NOT_FOUND = 404
const FIRST_SERVER_ERROR = 500
const LISTED_VERSIONS = 10

/** The permissions of the API token that a deployment needs. */
const PERMISSIONS =
  'Workers Scripts: Edit, Queues: Edit, D1: Edit, Workers R2 Storage: Edit, Account Settings: Read'

export interface Credentials {
  readonly token: string
  readonly accountId: string
  /** Default: Cloudflare's own. */
  readonly baseUrl?: string | undefined
}

/** A deployment of a Worker: the version that it made serve. */
interface Deployment {
  readonly version: string
  /** RFC 3339. */
  readonly createdAt: string
}

export type Cloudflare = ReturnType<typeof createCloudflare>

/** A response of the API. */
interface Answer {
  readonly status: number
  readonly result: unknown
  readonly errors: readonly { readonly code?: number; readonly message?: string }[]
}

/**
 * Creates access to an account. Every method throws a {@link Failure} that names the token, the
 * account or a permission if Cloudflare refuses a call, and exit code 3 if it does not answer.
 */
export function createCloudflare({ token, accountId, baseUrl = DEFAULT_BASE_URL }: Credentials) {
  async function send(path: string, body?: object): Promise<Answer> {
    let response: Response
    let text: string
    try {
      response = await fetch(baseUrl + path, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        redirect: 'error',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      text = await response.text()
    } catch {
      const host = new URL(baseUrl).host
      throw undecided('cloudflare_unreachable', `no response from ${host}`)
    }
    const { result, errors = [] } = (objectIn(text) ?? {}) as Partial<Answer>
    return { status: response.status, result, errors }
  }

  /** Returns the result of a call, or undefined for what does not exist. */
  async function call(path: string, body?: object): Promise<unknown> {
    const answer = await send(`/accounts/${accountId}${path}`, body)
    const { status, result, errors } = answer
    if (status === HTTP_NOT_FOUND) return undefined
    if (status < FIRST_CLIENT_ERROR) {
      // What is absent would be created: a response of a proxy must not count as an empty list.
      if (result !== undefined) return result
      const detail = `${path}: the response is not one of the Cloudflare API`
      throw undecided('cloudflare_error', detail)
    }
    if (status === HTTP_UNAUTHORIZED || status === HTTP_FORBIDDEN) throw await unauthorized(path)
    const [{ code = status, message = 'no reason given' } = {}] = errors
    const exitCode = status >= FIRST_SERVER_ERROR ? UNDECIDED : REFUSED
    throw new Failure(exitCode, 'cloudflare_error', `${path}: ${message} [code ${code}]`)
  }

  /** Finds out whether the token, the account or a permission is wrong. */
  async function unauthorized(path: string): Promise<Failure> {
    const checks = [
      await send('/user/tokens/verify'),
      await send(`/accounts/${accountId}/tokens/verify`),
    ]
    const isValid = checks.some(
      ({ result }) => (result as { status?: string })?.status === 'active',
    )
    if (!isValid) {
      return refused(
        'wrong_token',
        'Cloudflare does not accept CLOUDFLARE_API_TOKEN: it is wrong, or it has expired',
      )
    }
    const [, area] = path.split('/')
    return refused(
      'wrong_account',
      `CLOUDFLARE_API_TOKEN may not use /${area} of the account ${accountId}; check CLOUDFLARE_ACCOUNT_ID, and these permissions of the token: ${PERMISSIONS}`,
    )
  }

  return {
    async hasQueue(name: string): Promise<boolean> {
      const queues = listOf(await call(`/queues?name=${encodeURIComponent(name)}`))
      return queues.some((queue) => queue.queue_name === name)
    },
    /** Returns undefined if the database does not exist. */
    async databaseId(name: string): Promise<string | undefined> {
      const databases = listOf(await call(`/d1/database?name=${encodeURIComponent(name)}`))
      const found = databases.find((database) => database.name === name)
      return found === undefined ? undefined : String(found.uuid)
    },
    /** Returns the names of the applied migrations. */
    async appliedMigrations(databaseId: string): Promise<readonly string[]> {
      const query = async (sql: string) => {
        const [first] = listOf(await call(`/d1/database/${databaseId}/query`, { sql }))
        return listOf(first?.results).map(({ name }) => String(name))
      }
      const tables = await query("SELECT name FROM sqlite_master WHERE name = 'd1_migrations'")
      return tables.length === 0 ? [] : query('SELECT name FROM d1_migrations ORDER BY id')
    },
    async hasBucket(name: string): Promise<boolean> {
      return (await call(`/r2/buckets/${encodeURIComponent(name)}`)) !== undefined
    },
    /** Returns the names of the secrets, or undefined if the Worker does not exist. */
    async secrets(worker: string): Promise<readonly string[] | undefined> {
      const secrets = await call(`/workers/scripts/${encodeURIComponent(worker)}/secrets`)
      return secrets === undefined ? undefined : listOf(secrets).map(({ name }) => String(name))
    },
    /** Returns the latest deployments, newest first. Empty if the Worker does not exist. */
    async deployments(worker: string): Promise<readonly Deployment[]> {
      const answer = await call(`/workers/scripts/${encodeURIComponent(worker)}/deployments`)
      const { deployments } = (answer ?? {}) as { readonly deployments?: unknown }
      return listOf(deployments)
        .slice(0, LISTED_VERSIONS)
        .map(({ versions, created_on }) => ({
          version: String(listOf(versions)[0]?.version_id),
          createdAt: String(created_on),
        }))
    },
    /** Returns the account's subdomain of workers.dev; undefined if it has none. */
    async subdomain(): Promise<string | undefined> {
      const { subdomain } = ((await call('/workers/subdomain')) ?? {}) as { subdomain?: string }
      return subdomain
    },
  }
}

function listOf(value: unknown): readonly Record<string, unknown>[] {
  return Array.isArray(value) ? (value as Record<string, unknown>[]) : []
}
