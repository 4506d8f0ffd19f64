/** Clients, and the failures of those who try to be one, in one pipeline. */
import { addressBanKey } from '../../admission/ban.ts'
import { keyPart } from '../../admission/key.ts'
import { cutOffKey } from '../../admission/revocation.ts'
import { Unavailable } from '../../errors.ts'
import {
  type ClientLogins,
  FAILURE_WINDOW_SECONDS,
  type Failures,
  KNOWN_ADDRESS_SECONDS,
  type Login,
} from '../../oauth/client-logins.ts'
import type { ConfiguredClient } from '../../validators/client.ts'
import { clientKey, configuredClientsOf, parseClient } from './client-record.ts'
import { type RedisRest, sentOnce } from './rest.ts'
import { ask, resultOf } from './result.ts'

export interface ClientLoginsOptions {
  readonly rest: RedisRest
  /** The clients of `CLIENTS`. */
  readonly configured: readonly ConfiguredClient[]
  /** The gateway: audience of clients that name none, and issuer of the tokens of all. */
  readonly publicUrl: string
}

const WHOLE = /^\d{1,12}$/

/** Counts a failure under both keys; a window begins with its first one. */
const FAILED_SCRIPT = `
local counts = {}
for i, key in ipairs(KEYS) do
  counts[2 * i - 1] = redis.call('INCR', key)
  if counts[2 * i - 1] == 1 then redis.call('EXPIRE', key, ARGV[1]) end
  counts[2 * i] = redis.call('TTL', key)
end
return counts
`

/**
 * The adapter over Upstash. Every key is read by a command that fails for one of a wrong type. Asks
 * the same of Redis for a configured client as for a stored one, and for an unknown one: the time
 * of the answer tells nobody which it is.
 */
export function createClientLogins({
  rest,
  configured,
  publicUrl,
}: ClientLoginsOptions): ClientLogins {
  const fixed = configuredClientsOf(configured, publicUrl)
  // Sent again, an assertion would look used.
  const once = sentOnce(rest)

  return {
    async begin(login) {
      const { clientId, address } = login
      const [byAddress, byClient] = await failureKeys(login)
      const cutOffKeys = await cutOffKeysOf(publicUrl, clientId)
      const replies = await rest.send([
        ['GET', clientKey(await keyPart(clientId))],
        ['GET', byAddress],
        ['TTL', byAddress],
        ['GET', byClient],
        ['TTL', byClient],
        ['TTL', await knownKey(login)],
        ['GET', await addressBanKey(address)],
        ...cutOffKeys.map((key) => ['GET', key]),
      ])
      const [record, addressCount, addressTtl, clientCount, clientTtl, known, ban, ...cutOffs] =
        replies.map(resultOf)
      return {
        client: fixed.get(clientId) ?? (record === null ? undefined : parseClient(record)),
        byAddress: failures(addressCount ?? 0, addressTtl),
        byClient: failures(clientCount ?? 0, clientTtl),
        knownForSeconds: whole(known),
        bannedUntilSeconds: ban === null ? undefined : whole(ban),
        cutOffs: new Map(cutOffKeys.map((key, index) => [key, secondOrNull(cutOffs[index])])),
      }
    },

    async failed(login) {
      const keys = await failureKeys(login)
      const counts = await ask(rest, [
        'EVAL',
        FAILED_SCRIPT,
        keys.length,
        ...keys,
        FAILURE_WINDOW_SECONDS,
      ])
      if (!Array.isArray(counts) || counts.length !== 2 * keys.length)
        throw new Unavailable('redis', 'malformed')
      return {
        byAddress: failures(counts[0], counts[1]),
        byClient: failures(counts[2], counts[3]),
      }
    },

    async succeeded(login, { remember, use }) {
      if (use !== undefined) {
        const result = await ask(once, ['SET', use.key, '1', 'EX', use.ttlSeconds, 'NX'])
        if (result === null) return false
        if (result !== 'OK') throw new Unavailable('redis', 'malformed')
      }
      if (remember)
        await ask(rest, ['SET', await knownKey(login), '1', 'EX', KNOWN_ADDRESS_SECONDS])
      return true
    },
  }
}

/** Tokens for a client itself end with those of the client, and with those of the subject it is. */
function cutOffKeysOf(issuer: string, clientId: string): Promise<string[]> {
  return Promise.all([
    cutOffKey('client', issuer, clientId),
    cutOffKey('subject', issuer, clientId),
  ])
}

async function failureKeys({ clientId, address }: Login): Promise<[string, string]> {
  return [await failureKey('address', address), await failureKey('client', clientId)]
}

async function failureKey(by: 'address' | 'client', whose: string): Promise<string> {
  return `pc:client-failures:${by}:${await keyPart(whose)}`
}

async function knownKey({ clientId, address }: Login): Promise<string> {
  return `pc:client-address:${await keyPart(clientId)}:${await keyPart(address)}`
}

/** A counter without a life left, as Redis tells it, is about to be forgotten. */
function failures(count: unknown, ttlSeconds: unknown): Failures {
  return { count: whole(count), resetSeconds: Math.max(1, whole(ttlSeconds)) }
}

/** Throws for what is no whole number: an unreadable count must not read as none. */
function whole(value: unknown): number {
  const number = typeof value === 'string' && WHOLE.test(value) ? Number(value) : value
  if (!Number.isSafeInteger(number)) throw new Unavailable('redis', 'malformed')
  return number as number
}

/** Throws for what is no second: an unreadable cut-off must not read as none. */
function secondOrNull(value: unknown): string | null {
  if (value === null || (typeof value === 'string' && WHOLE.test(value))) return value
  throw new Unavailable('redis', 'malformed')
}
