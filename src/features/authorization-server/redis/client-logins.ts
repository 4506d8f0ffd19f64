/** Reads clients and counts their failed authentications in Redis. */
import { addressBanKeys } from '../../../access/abuse/ban.ts'
import { revokedBeforeKey } from '../../../access/revocation/revocation.ts'
import type { RedisConnection } from '../../../redis/connection.ts'
import { keyPart } from '../../../redis/key-part.ts'
import { authorizationServerKeys, type RedisKeys } from '../../../redis/keys.ts'
import { recordUse } from '../../../redis/lanes.ts'
import { malformed, readList, readResult, sendCommand } from '../../../redis/reply.ts'
import { runText } from '../../../redis/script.ts'
import { COUNT_FAILURES_SCRIPT } from '../../../redis/scripts.generated.ts'
import {
  type ClientLogins,
  FAILURE_WINDOW_SECONDS,
  type Failures,
  KNOWN_ADDRESS_SECONDS,
  type Login,
  NO_FAILURES,
} from '../client-logins.ts'
import type { ConfiguredClient } from '../schemas/client.ts'
import { createConfiguredClients, parseClient } from './client-record.ts'

export interface ClientLoginsOptions {
  readonly redis: RedisConnection
  readonly configured: readonly ConfiguredClient[]
  /** The gateway's public URL: the default audience of clients, and the issuer of their tokens. */
  readonly publicUrl: string
}

const WHOLE = /^\d{1,12}$/

/**
 * Creates the adapter. Each key is read by a command that fails if the key has the wrong type.
 * Configured, stored and unknown clients cause the same commands. The response time therefore does
 * not reveal which of them a client is.
 */
export function createClientLogins({
  redis,
  configured,
  publicUrl,
}: ClientLoginsOptions): ClientLogins {
  const fixed = createConfiguredClients(configured, publicUrl)
  const keys = { ...redis.keys, ...authorizationServerKeys(redis.keys) }

  return {
    async begin(login) {
      const { clientId, address } = login
      const [byAddress, byClient] = await failureKeys(keys, login)
      const [addressBan, credentialsBan] = await addressBanKeys(keys, address)
      const revokedBeforeKeys = await deriveCutoffKeys(keys, publicUrl, clientId)
      const replies = await redis.send([
        ['GET', keys.client + (await keyPart(clientId))],
        ['GET', byAddress],
        ['TTL', byAddress],
        ['GET', byClient],
        ['TTL', byClient],
        ['TTL', await clientAddressKey(keys, clientId, address)],
        ['GET', addressBan.key],
        ['GET', credentialsBan.key],
        ...revokedBeforeKeys.map((key) => ['GET', key]),
      ])
      const [
        record,
        addressCount,
        addressTtl,
        clientCount,
        clientTtl,
        known,
        bannedUntil,
        credentialsBannedUntil,
        ...revokedBefore
      ] = replies.map(readResult)
      return {
        client: fixed.get(clientId) ?? (record === null ? undefined : parseClient(record)),
        byAddress: failures(addressCount ?? 0, addressTtl),
        byClient: failures(clientCount ?? 0, clientTtl),
        knownForSeconds: whole(known),
        bannedUntilSeconds: latestOf(bannedUntil, credentialsBannedUntil),
        revokedBefore: new Map(
          revokedBeforeKeys.map((key, index) => [key, secondOrNull(revokedBefore[index])]),
        ),
      }
    },

    async failed(login, countsClient) {
      const [address, client] = await failureKeys(keys, login)
      const counters = countsClient ? [address, client] : [address]
      const reply = await runText(redis, COUNT_FAILURES_SCRIPT, counters, [FAILURE_WINDOW_SECONDS])
      const counts = readList(reply, 2 * counters.length)
      return {
        byAddress: failures(counts[0], counts[1]),
        byClient: countsClient ? failures(counts[2], counts[3]) : NO_FAILURES,
      }
    },

    async succeeded({ clientId, address }, { remember, use }) {
      const isUsed =
        use !== undefined &&
        !(await recordUse(
          redis,
          use.id,
          (names) => authorizationServerKeys(names).clientAssertion,
          use.ttlSeconds,
        ))
      if (isUsed) return false
      if (remember) {
        const key = await clientAddressKey(keys, clientId, address)
        await sendCommand(redis, ['SET', key, '1', 'EX', KNOWN_ADDRESS_SECONDS])
      }
      return true
    },
  }
}

/** Returns the keys of the cutoffs of the client, and of the client as a subject. */
function deriveCutoffKeys(keys: RedisKeys, issuer: string, clientId: string): Promise<string[]> {
  return Promise.all([
    revokedBeforeKey(keys, 'client', issuer, clientId),
    revokedBeforeKey(keys, 'subject', issuer, clientId),
  ])
}

type ClientKeys = ReturnType<typeof authorizationServerKeys>

async function failureKeys(
  { clientFailures }: Pick<ClientKeys, 'clientFailures'>,
  { clientId, address }: Login,
): Promise<[string, string]> {
  return [
    `${clientFailures}address:${await keyPart(address)}`,
    `${clientFailures}client:${await keyPart(clientId)}`,
  ]
}

/** Returns the key that exists if a client has authenticated from an address. */
async function clientAddressKey(
  keys: Pick<ClientKeys, 'clientAddress'>,
  clientId: string,
  address: string,
): Promise<string> {
  return `${keys.clientAddress}${await keyPart(clientId)}:${await keyPart(address)}`
}

/** A count without a remaining TTL is about to expire, so the wait is at least 1 s. */
function failures(count: unknown, ttlSeconds: unknown): Failures {
  return { count: whole(count), resetSeconds: Math.max(1, whole(ttlSeconds)) }
}

/** Returns the later end of two bans. Undefined: there is none. */
function latestOf(...ends: readonly unknown[]): number | undefined {
  const inForce = ends.filter((end) => end !== null).map(whole)
  return inForce.length === 0 ? undefined : Math.max(...inForce)
}

/** Throws `Unavailable` if the value is not an integer: an unreadable count must not count as 0. */
function whole(value: unknown): number {
  const number = typeof value === 'string' && WHOLE.test(value) ? Number(value) : value
  if (!Number.isSafeInteger(number)) throw malformed()
  return number as number
}

/** Throws `Unavailable` if the value is not a second: it must not count as no cutoff. */
function secondOrNull(value: unknown): string | null {
  if (value === null || (typeof value === 'string' && WHOLE.test(value))) return value
  throw malformed()
}
