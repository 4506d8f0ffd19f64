/**
 * Copies facts about callers to the lanes of a cluster: revocations, cutoffs, bans and plans. The control
 * lane has all of them, with the records of operators. See docs/decisions/0119.
 */
import { Unavailable } from '../../../errors.ts'
import { acknowledged } from '../../../redis/acknowledged.ts'
import type { Broadcast, Fact, Lanes, RedisConnection } from '../../../redis/connection.ts'
import { type RedisKeys, replicationKeys } from '../../../redis/keys.ts'
import { NEVER_ENDS } from '../../../redis/record-list.ts'
import { readInteger, readList, readResult, readText, sendCommand } from '../../../redis/reply.ts'
import { createScript, evalCommand, runScript, runText } from '../../../redis/script.ts'
import {
  BEGIN_FACTS_SCRIPT,
  COPY_FACTS_SCRIPT,
  END_FACTS_SCRIPT,
  PENDING_FACTS_SCRIPT,
  READ_FACTS_SCRIPT,
} from '../../../redis/scripts.generated.ts'
import { MAX_ISSUED_AHEAD_SECONDS } from '../revocation.ts'

/**
 * How long a lane has the copy of a record of a secret, in seconds. Less than its revocation lasts, which a gateway of
 * an earlier version writes without a new copy. Later, the record is read from the control lane and copied again.
 */
const RECORD_COPY_SECONDS = 3_600

/** A fact with the lane that needs it. */
interface Copy {
  /** The number of the lane; undefined: all lanes. */
  readonly lane: number | undefined
  /** The key without the prefix. */
  readonly name: string
}

/** A copy that is not complete, with the mark that says so. */
type Pending = ReturnType<typeof pendingIn>

/** The age of a pending fact whose writer is believed to have ended, in seconds. To copy it takes less. */
const ABANDONED_SECONDS = 2
/** Facts that are read at once to complete them, and the most such pages of one run. */
const COMPLETED_AT_ONCE = 200
const MAX_PAGES = 50
/** Copied facts that a process remembers. */
const MAX_COPIED = 10_000
/** Facts of one call to a lane: about 20 KB. */
const COPIED_AT_ONCE = 100
/** How long a lane recognizes an older copy. A call that is later than this has long failed. */
const COPY_SECONDS = 3_600
const EVERY_LANE = '*'

const copyScript = createScript(COPY_FACTS_SCRIPT)

/** Returns a connection with lanes whose writers copy facts to all lanes that need them. */
export function withBroadcast<Connection extends RedisConnection & { readonly lanes: Lanes }>(
  redis: Connection,
): Connection & { readonly broadcast: Broadcast } {
  const control = acknowledged(redis)
  const { lanes } = redis
  const { pendingFacts } = replicationKeys(redis.keys)
  const copiesOf = (facts: readonly Fact[]) => facts.map((fact) => copyOf(fact, redis.keys, lanes))
  /** The ends of facts that this process has copied. */
  const copied = new Map<string, number>()
  const broadcast: Broadcast = {
    async write(facts, now, write) {
      if (facts.length === 0) return write(control)
      const pending: Pending[] = []
      const result = await write(withMarks(control, copiesOf(facts), pending))
      // Without a mark, no gateway would complete the facts if this process ended now.
      if (pending.length === 0) throw new TypeError('facts: the write needs the connection it gets')
      await copyToLanes(control, lanes, pending, now)
      return result
    },

    async copy(facts, now, endsAtSeconds) {
      // The end is from a number of whole seconds that remain.
      const isNew = ({ key }: Fact) =>
        endsAtSeconds === undefined || Math.abs((copied.get(key) ?? 0) - endsAtSeconds) > 1
      const due = facts.filter(isNew)
      const pending: Pending[] = []
      if (due.length > 0) await withMarks(control, copiesOf(due), pending).send([])
      await copyToLanes(control, lanes, pending, now)
      if (endsAtSeconds === undefined) return
      if (copied.size > MAX_COPIED) copied.clear()
      for (const { key } of due) copied.set(key, endsAtSeconds)
    },

    async cache(facts, now) {
      const { version, facts: stored } = await readState(redis, copiesOf(facts))
      const nowSeconds = Math.floor(now() / 1000)
      for (const fact of stored) {
        const lane = lanes.all[fact.copy.lane ?? -1]
        if (lane === undefined) continue
        await copyTo(lane, [copyOfRecord(redis, lanes, fact)], version, nowSeconds)
      }
    },

    nameOf: (fact) => textOf(copyOf(fact, redis.keys, lanes)),

    async complete(now) {
      let [completed, failed] = [0, 0]
      let cause: unknown
      for (let page = 0; page < MAX_PAGES; page += 1) {
        // Those that failed stay, and must not hide the others.
        const range = [ABANDONED_SECONDS, failed, COMPLETED_AT_ONCE]
        const marks = readList(await runText(redis, PENDING_FACTS_SCRIPT, [pendingFacts], range))
        const pending = marks.map((mark) => pendingIn(readText(mark)))
        for (const group of groupsOf(pending)) {
          try {
            await copyTogether(control, lanes, group, now)
            completed += group.length
          } catch (error) {
            cause ??= error
            failed += group.length
          }
        }
        if (marks.length < COMPLETED_AT_ONCE) break
      }
      if (failed > 0) throw cause
      return completed
    },
  }
  return { ...redis, broadcast }
}

/**
 * Returns a connection that marks the facts in the same call, just before its commands run. So a mark is as old as the
 * write, however long the process or the network was paused before: `complete` never ends the mark of a write that is
 * still to come. Adds the marks to `pending`.
 */
function withMarks(
  control: RedisConnection,
  copies: readonly Copy[],
  pending: Pending[],
): RedisConnection {
  const { pendingFacts, factClock } = replicationKeys(control.keys)
  const begin = evalCommand(BEGIN_FACTS_SCRIPT, [pendingFacts, factClock], copies.map(textOf))
  return {
    ...control,
    async send(commands, options) {
      const [begun, ...replies] = await control.send([begin, ...commands], options)
      const marks = readList(readResult(begun), copies.length)
      for (const [at, copy] of copies.entries()) pending.push({ copy, mark: readText(marks[at]) })
      return replies
    },
  }
}

/** Copies every group, also after one has failed. Throws the first cause. */
async function copyToLanes(
  control: RedisConnection,
  lanes: Lanes,
  pending: readonly Pending[],
  now: () => number,
): Promise<void> {
  const groups = groupsOf(pending)
  const outcomes = await Promise.allSettled(
    groups.map((group) => copyTogether(control, lanes, group, now)),
  )
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
}

/** Returns groups for one call to a lane. Facts of one lane only are apart: another lane may be down. */
function groupsOf(pending: readonly Pending[]): readonly (readonly Pending[])[] {
  const byLane = new Map<number | undefined, Pending[]>()
  for (const each of pending) {
    const { lane } = each.copy
    const same = byLane.get(lane)
    if (same === undefined) byLane.set(lane, [each])
    else same.push(each)
  }
  return [...byLane.values()].flatMap((all) =>
    Array.from({ length: Math.ceil(all.length / COPIED_AT_ONCE) }, (_, index) =>
      all.slice(index * COPIED_AT_ONCE, (index + 1) * COPIED_AT_ONCE),
    ),
  )
}

async function copyTogether(
  control: RedisConnection,
  lanes: Lanes,
  pending: readonly Pending[],
  now: () => number,
): Promise<void> {
  const read = await readState(
    control,
    pending.map(({ copy }) => copy),
  )
  const { pendingFacts, facts } = replicationKeys(control.keys)
  const nowSeconds = Math.floor(now() / 1000)
  const calls = [...lanes.all.entries()].flatMap(([number, lane]) => {
    const own = read.facts.filter(({ copy }) => copy.lane === undefined || copy.lane === number)
    const facts = own.map((fact) => copyOfRecord(control, lanes, fact))
    return own.length === 0 ? [] : [copyTo(acknowledged(lane), facts, read.version, nowSeconds)]
  })
  const outcomes = await Promise.allSettled(calls)
  const failures = outcomes.filter((outcome) => outcome.status === 'rejected')
  if (failures.length > 0) throw incomplete(failures[0]?.reason, failures.length, calls.length)
  const ends = read.facts.flatMap((fact, index) => [
    // A lane that lost the copy of a record gets it with its next use.
    ...[
      pending[index]?.mark ?? '',
      textOf(fact.copy),
      isRecord(control, fact.copy) ? 0 : endOf(fact, nowSeconds),
    ],
  ])
  // If this fails, another gateway copies the facts again, which changes nothing.
  await runText(
    control,
    END_FACTS_SCRIPT,
    [pendingFacts, facts],
    [nowSeconds, read.version, ...ends],
  ).catch(() => {})
}

/**
 * Copies all facts to a lane that has lost its keys. Throws `Unavailable` if that is not possible; it can
 * be repeated.
 */
export async function restoreLane(
  control: RedisConnection,
  lane: RedisConnection,
  number: number,
  now: () => number,
): Promise<void> {
  const { facts } = replicationKeys(control.keys)
  let cursor = '0'
  do {
    const [next, found] = readList(
      await sendCommand(control, ['ZSCAN', facts, cursor, 'COUNT', COPIED_AT_ONCE]),
      2,
    )
    cursor = readText(next)
    const names = readList(found).filter((_, index) => index % 2 === 0)
    const copies = names
      .map((text) => copyIn(readText(text)))
      .filter((copy) => copy.lane === undefined || copy.lane === number)
    if (copies.length > 0) {
      const read = await readState(control, copies)
      await copyTo(lane, read.facts, read.version, Math.floor(now() / 1000))
    }
  } while (cursor !== '0')
}

/** A fact as the control lane has it. */
interface StoredFact {
  readonly copy: Copy
  /** Empty: it is absent. */
  readonly value: string
  /** In seconds. Below 0: it has no end. */
  readonly life: number
}

async function readState(
  control: RedisConnection,
  copies: readonly Copy[],
): Promise<{ readonly version: string; readonly facts: readonly StoredFact[] }> {
  const { factClock } = replicationKeys(control.keys)
  const keys = [factClock, ...copies.map(({ name }) => control.keys.prefix + name)]
  const [version, ...read] = readList(
    await runText(control, READ_FACTS_SCRIPT, keys, []),
    1 + 2 * copies.length,
  )
  const facts = copies.map((copy, index) => ({
    copy,
    value: readText(read[2 * index]),
    life: readInteger(read[2 * index + 1]),
  }))
  return { version: readText(version), facts }
}

function copyTo(
  lane: RedisConnection,
  facts: readonly StoredFact[],
  version: string,
  nowSeconds: number,
): Promise<unknown> {
  const { cutoff, texts } = namesOf(lane.keys)
  const keys = [lane.keys.feed]
  const values: (string | number)[] = [version, nowSeconds, COPY_SECONDS]
  for (const { copy, value, life } of facts) {
    const key = lane.keys.prefix + copy.name
    keys.push(key, lane.keys.owners + key, replicationKeys(lane.keys).copied + copy.name)
    const lead = copy.name.startsWith(cutoff) ? MAX_ISSUED_AHEAD_SECONDS : 0
    const isText = texts.some((beginning) => copy.name.startsWith(beginning))
    values.push(value, life, lead, isText ? 1 : 0)
  }
  return runScript(lane, copyScript, keys, values)
}

/** Whether a fact is the record of a secret. */
const isRecord = ({ keys }: RedisConnection, { name }: Copy): boolean =>
  name.startsWith(keys.reference.slice(keys.prefix.length))

/**
 * Returns what is stored in a lane. For a record, that is a copy with a short life. While gateways of an earlier
 * version run, it is nothing, because they would not change the copy.
 */
function copyOfRecord(
  control: RedisConnection,
  { credentialsInControl }: Lanes,
  fact: StoredFact,
): StoredFact {
  const { value, life } = fact
  if (!isRecord(control, fact.copy) || value === '') return fact
  if (credentialsInControl) return { ...fact, value: '' }
  return { ...fact, life: life < 0 ? RECORD_COPY_SECONDS : Math.min(life, RECORD_COPY_SECONDS) }
}

/** Returns the second in which a fact ends. 0: it is absent. */
function endOf({ value, life }: StoredFact, nowSeconds: number): string | number {
  if (value === '') return 0
  return life < 0 ? NEVER_ENDS : nowSeconds + life
}

/** The response says what is in force, because an operator must know it. */
function incomplete(cause: unknown, failed: number, all: number): unknown {
  if (!(cause instanceof Unavailable)) return cause
  const detail =
    `The change is stored, and is in force in ${all - failed} of ${all} lanes. Requests of the other lanes ` +
    'are refused with 503 while their master is down, and any gateway completes the change afterwards. ' +
    'The call can be repeated.'
  return new Unavailable(cause.dependency, cause.fault, { cause, detail })
}

function copyOf({ key, subject }: Fact, { prefix }: RedisKeys, { all, of }: Lanes): Copy {
  const lane = subject === undefined ? undefined : all.indexOf(of(subject))
  return { lane: lane === -1 ? undefined : lane, name: key.slice(prefix.length) }
}

const textOf = ({ lane, name }: Copy): string => `${lane ?? EVERY_LANE} ${name}`

function copyIn(text: string): Copy {
  const end = text.indexOf(' ')
  const lane = text.slice(0, end)
  return { lane: lane === EVERY_LANE ? undefined : Number(lane), name: text.slice(end + 1) }
}

/** A mark begins with its version, in microseconds. Those of an earlier version have none, and begin with the lane. */
const VERSION = /^\d{9,} /

const pendingIn = (mark: string) => ({ copy: copyIn(mark.replace(VERSION, '')), mark })

const namesOf = ({ prefix, revokedBefore, plan, limitOverride, reference }: RedisKeys) => ({
  cutoff: revokedBefore.slice(prefix.length),
  texts: [plan, limitOverride, reference].map((name) => name.slice(prefix.length)),
})
