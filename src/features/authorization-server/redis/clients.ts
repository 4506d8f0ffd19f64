/** The client registry: clients in Redis and those of the configuration. */

import { Denied } from '../../../errors.ts'
import { recordId } from '../../../isolate/random-ids.ts'
import { acknowledged } from '../../../redis/acknowledged.ts'
import type { RedisConnection } from '../../../redis/connection.ts'
import { authorizationServerKeys } from '../../../redis/keys.ts'
import { malformed, readList, readText, sendCommand } from '../../../redis/reply.ts'
import { runText } from '../../../redis/script.ts'
import type { Client, NewClient } from '../client.ts'
import { clientSecretHash, newClientSecret } from '../client-secret.ts'
import { type ConfiguredClient, isClientId } from '../schemas/client.ts'
import { createConfiguredClients, describedClient, parseClient } from './client-record.ts'
import { CREATE_CLIENT_SCRIPT, REPLACE_CLIENT_SCRIPT } from './scripts.generated.ts'

export interface ClientRegistryOptions {
  readonly redis: RedisConnection
  readonly configured: readonly ConfiguredClient[]
  /** The gateway's public URL: the default audience of clients. */
  readonly publicUrl: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** If other requests change the same client at the same time. */
const MAX_ATTEMPTS = 5
/** Clients of one read of a filtered page. */
const READ_CLIENTS = 500
/** A cursor that is a position in the list of configured clients. */
const CONFIGURED_CURSOR = /^configured:(\d{1,6})$/

/**
 * Creates the registry of the clients. A configured client has priority over a stored one with the same id.
 * Nothing is cached, so a change is in force in every isolate from the next request on. Throws
 * `Denied` (`invalid_input`) for an invalid cursor, and `Unavailable` if the store cannot read or write.
 */
export function createClientRegistry({ redis, configured, publicUrl, now }: ClientRegistryOptions) {
  const fixed = createConfiguredClients(configured, publicUrl)
  const { clients: index, client } = authorizationServerKeys(redis.keys)
  const clientKey = (id: string) => client + id

  async function stored(ids: readonly string[]): Promise<Client[]> {
    if (ids.length === 0) return []
    const reply = await sendCommand(redis, ['MGET', ...ids.map(clientKey)])
    return readList(reply, ids.length)
      .filter((text) => text !== null)
      .map(parseClient)
  }

  /** Returns at most `count` ids, newest first, older than `cursor`. */
  async function idsBefore(cursor: string | undefined, count: number): Promise<string[]> {
    const start = cursor === undefined ? '+' : `(${cursor}`
    const range = ['ZREVRANGEBYLEX', index, start, '-', 'LIMIT', 0, count]
    return readList(await sendCommand(redis, range)).map(readText)
  }

  /** Returns false if the client does not exist, or if the change does not apply. */
  async function replace(id: string, change: (client: Client) => Client | undefined) {
    if (fixed.has(id) || !isClientId(id)) return false
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const text = await sendCommand(redis, ['GET', clientKey(id)])
      if (text === null) return false
      const changed = change(parseClient(text))
      if (changed === undefined) return false
      const args = [String(text), JSON.stringify(changed)]
      const done = await runText(acknowledged(redis), REPLACE_CLIENT_SCRIPT, [clientKey(id)], args)
      if (done === 1) return true
      if (done !== 0) throw malformed()
    }
    throw new Denied({ code: 'conflict' })
  }

  return {
    async find(id: string): Promise<Client | undefined> {
      const known = fixed.get(id)
      if (known !== undefined || !isClientId(id)) return known
      const text = await sendCommand(redis, ['GET', clientKey(id)])
      return text === null ? undefined : parseClient(text)
    },

    /**
     * Returns a page of clients, newest first, with configured clients at the end. With a tenant, the page
     * and its cursor depend on clients of this tenant alone.
     */
    async list(
      { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
      tenant?: string,
    ): Promise<{ readonly clients: readonly Client[]; readonly cursor?: string }> {
      const position = CONFIGURED_CURSOR.exec(cursor ?? '')?.[1]
      if (cursor !== undefined && position === undefined && !isClientId(cursor)) throw badCursor()
      const isListed = (one: Client) => tenant === undefined || one.tenant === tenant
      const found: Client[] = []
      let after = position === undefined ? cursor : undefined
      let isEnd = position !== undefined
      const size = tenant === undefined ? limit + 1 : READ_CLIENTS
      while (!isEnd && found.length <= limit) {
        const ids = await idsBefore(after, size)
        found.push(...(await stored(ids)).filter(isListed))
        after = ids.at(-1)
        isEnd = ids.length < size
      }
      const clients = found.slice(0, limit)
      if (found.length > limit) return { clients, cursor: String(clients.at(-1)?.id) }
      const others = [...fixed.values()].filter(isListed)
      const start = Number(position ?? 0)
      const end = start + limit - clients.length
      const page = [...clients, ...others.slice(start, end)]
      return end < others.length
        ? { clients: page, cursor: `configured:${end}` }
        : { clients: page }
    },

    /** Creates a client. `author` is the operator. Its secret is returned only here. Undefined: it is public, or has `jwks`. */
    async create(described: NewClient, author?: Pick<Client, 'createdBy' | 'createdByName'>) {
      const hasSecret = described.jwks === undefined && described.public !== true
      const secret = hasSecret ? newClientSecret() : undefined
      const client: Client = {
        ...describedClient(described, recordId(), publicUrl),
        secrets: secret === undefined ? [] : [await clientSecretHash(secret)],
        createdAtSeconds: Math.floor(now() / 1000),
        configured: false,
        ...author,
      }
      const { id } = client
      const keys = [clientKey(id), index]
      const done = await runText(redis, CREATE_CLIENT_SCRIPT, keys, [JSON.stringify(client), id])
      if (done !== 1) throw malformed()
      return { client, secret }
    },

    /**
     * Creates a new secret. The old ones stay valid for `graceSeconds`. Returns undefined if the
     * client does not exist, is configured, is public, or has `jwks`. Throws `Denied` (`conflict`) if other
     * requests keep changing it; `disable` does so too.
     */
    async rotateSecret(id: string, graceSeconds: number): Promise<string | undefined> {
      const secret = newClientSecret()
      const newHash = await clientSecretHash(secret)
      const nowSeconds = Math.floor(now() / 1000)
      const done = await replace(id, (client) => {
        if (client.jwks !== undefined || client.public) return undefined
        const old = client.secrets.flatMap(({ hash, untilSeconds }) => {
          const until = Math.min(untilSeconds ?? Infinity, nowSeconds + graceSeconds)
          return until > nowSeconds ? [{ hash, untilSeconds: until }] : []
        })
        return { ...client, secrets: [newHash, ...old] }
      })
      return done ? secret : undefined
    },

    /** Disables a client: it gets no more tokens. False: it does not exist, or is configured. */
    disable: (id: string) => replace(id, (client) => ({ ...client, disabled: true })),
  }
}

function badCursor(): Denied {
  const error = {
    in: 'query',
    path: '/cursor',
    message: 'must be a cursor from an earlier page',
  } as const
  return new Denied({ code: 'invalid_input', errors: [error] })
}
