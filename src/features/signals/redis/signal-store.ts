/** Applies the effects of events in Redis. */

import { memberPart, subjectBanKey } from '../../../access/abuse/ban.ts'
import type { Ban } from '../../../access/abuse/ban-record.ts'
import { writeFacts } from '../../../access/revocation/redis/facts.ts'
import { revokedBeforeKey, revokedTokenKey } from '../../../access/revocation/revocation.ts'
import { tokenIdHash } from '../../../access/token-id.ts'
import { sha256 } from '../../../crypto/sha256.ts'
import { recordId } from '../../../isolate/random-ids.ts'
import { type RedisConnection, sentOnce } from '../../../redis/connection.ts'
import { endsKey, signalKeys } from '../../../redis/keys.ts'
import { malformed, readList, sendCommand } from '../../../redis/reply.ts'
import { runText } from '../../../redis/script.ts'
import { BAN_SECONDS } from '../definition.ts'
import type { SignalEffect } from '../effects.ts'
import type { EffectOutcome, SignalStore } from '../signal-store.ts'
import { APPLY_EVENT_SCRIPT } from './scripts.generated.ts'

export interface SignalStoreOptions {
  readonly redis: RedisConnection
  /** The longest life of what a cutoff, or the revocation of one token, must cover. */
  readonly cutoffLifeSeconds: number
  /** The longest time for which an event is accepted. */
  readonly eventLifeSeconds: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Whole numbers of Lua that its conversion to text keeps. */
const MAX_TIME_SECONDS = 99_999_999_999

export function createSignalStore({
  redis,
  cutoffLifeSeconds,
  eventLifeSeconds,
  now,
}: SignalStoreOptions): SignalStore {
  const names = { ...redis.keys, ...signalKeys(redis.keys) }
  const { prefix: records, index } = redis.keys.banRecords
  const ends = endsKey(index)

  async function callOf(
    effect: SignalEffect,
    event: { readonly transmitter: string; readonly cutoffSeconds: number },
  ) {
    const nowSeconds = Math.floor(now() / 1000)
    switch (effect.kind) {
      case 'cutoff': {
        const { kind, issuer, value } = effect.of
        const key = await revokedBeforeKey(names, kind, issuer, value)
        return {
          keys: [key],
          values: ['cutoff', event.cutoffSeconds, cutoffLifeSeconds],
          fact: { key, subject: kind === 'subject' ? value : undefined },
        }
      }
      case 'token': {
        const hash = await tokenIdHash(effect.issuer, effect.tokenId)
        const key = revokedTokenKey(names, hash)
        return { keys: [key], values: ['token', cutoffLifeSeconds], fact: { key } }
      }
      case 'ban': {
        const { issuer, subject } = effect
        const till = nowSeconds + BAN_SECONDS
        const ban: Ban = {
          id: recordId(),
          kind: 'subject',
          value: subject,
          issuer,
          issuers: [issuer],
          mode: 'enforce',
          refuses: 'everything',
          reason: `signal of ${event.transmitter}`.slice(0, 256),
          createdAtSeconds: nowSeconds,
          createdBy: 'portcullis',
          expiresAtSeconds: till,
        }
        const key = await subjectBanKey(names, issuer, subject)
        return {
          keys: [await accountKey(effect), records + ban.id, index, ends, key, names.owners + key],
          values: ['ban', timeOf(effect), ban.id, JSON.stringify(ban), till, records],
          fact: { key, subject },
        }
      }
      case 'lift': {
        const key = await subjectBanKey(names, effect.issuer, effect.subject)
        return {
          keys: [await accountKey(effect), index, ends, key, names.owners + key],
          values: ['lift', timeOf(effect), eventLifeSeconds, records],
          fact: { key, subject: effect.subject },
        }
      }
      default:
        return effect satisfies never
    }
  }

  const accountKey = async (account: { readonly issuer: string; readonly subject: string }) =>
    names.signalAccount + (await memberPart(account))

  return {
    async reservePoll(transmitter, seconds) {
      const key = names.signalPoll + (await sha256(transmitter))
      // Not repeated: the second call would find the reservation of the first.
      return (await sendCommand(sentOnce(redis), ['SET', key, '1', 'NX', 'EX', seconds])) === 'OK'
    },

    async apply({ transmitter, id, lifeSeconds, cutoffSeconds, effects }) {
      const event = { transmitter, cutoffSeconds }
      const calls = await Promise.all(effects.map((effect) => callOf(effect, event)))
      const key = names.signalEvent + (await sha256(JSON.stringify([transmitter, id])))
      const keys = [key, redis.keys.feed, ...calls.flatMap((call) => call.keys)]
      const times = [lifeSeconds, Math.floor(now() / 1000)]
      const args = [...times, ...calls.flatMap(({ values }) => values)]
      const facts = calls.map(({ fact }) => fact)
      const reply = readList(
        await writeFacts(redis, facts, now, (control) =>
          runText(control, APPLY_EVENT_SCRIPT, keys, args),
        ),
      )
      const isRepeated = reply[0] === 'duplicate'
      const outcomes = reply.filter(isOutcome)
      if (outcomes.length !== effects.length) throw malformed()
      return { isRepeated, outcomes }
    },
  }
}

const isOutcome = (value: unknown): value is EffectOutcome =>
  value === 'applied' || value === 'stale'

const timeOf = ({ atSeconds }: { readonly atSeconds: number }): number =>
  Math.min(Math.floor(atSeconds), MAX_TIME_SECONDS)
