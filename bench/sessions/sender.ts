/** Process that performs the sessions of many users, step by step, and checks every response. */
import { setTimeout as sleep } from 'node:timers/promises'
import { importJWK, SignJWT } from 'jose'
import { type Client, createClient } from '../load/client.ts'
import { serveParent } from '../processes/child.ts'
import type { Question, Setup, Step, StepOutcome } from './protocol.ts'
import { createSteps, type Steps, type User } from './user.ts'

const LIFE_SECONDS = 3_600
const MS_PER_SECOND = 1_000
const EXAMPLES = 5

interface Prepared {
  readonly setup: Setup
  readonly users: readonly User[]
  readonly steps: Steps
  readonly client: Client
  /** Users with a successful logout. */
  readonly ended: Set<User>
}

let prepared: Prepared | undefined

async function prepare(setup: Setup): Promise<Prepared> {
  prepared?.client.close()
  const { issuer, audience, jwk } = setup.issuer
  const key = await importJWK(jwk, 'ES256')
  const iat = Math.floor(Date.now() / MS_PER_SECOND)
  const users: User[] = []
  for (let number = setup.first; number < setup.first + setup.users; number++) {
    const subjectToken = await new SignJWT({
      client_id: 'bench',
      roles: ['reader'],
      jti: crypto.randomUUID(),
    })
      .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: jwk.kid ?? '' })
      .setIssuer(issuer)
      .setSubject(`${setup.prefix}-${number}`)
      .setAudience(audience)
      .setIssuedAt(iat)
      .setExpirationTime(iat + LIFE_SECONDS)
      .sign(key)
    users.push({ number, subjectToken })
  }
  const client = createClient({
    maxSockets: Math.ceil(setup.connections / setup.urls.length),
  })
  return {
    setup,
    users,
    client,
    ended: new Set(),
    steps: createSteps(client, setup.urls, setup.client),
  }
}

function turnsOf(step: Step, { users, setup, ended }: Prepared): (readonly [User, number])[] {
  const takers = users.filter((user) => {
    if (step === 'login') return true
    return step === 'again' ? ended.has(user) : user.refresh !== undefined
  })
  const rounds = step === 'verify' ? setup.verifies : 1
  return Array.from({ length: rounds }, (_, round) =>
    takers.map((user) => [user, round + 1] as const),
  ).flat()
}

async function run(step: Step, perSecond: number | undefined): Promise<StepOutcome> {
  if (prepared === undefined) throw new Error('not prepared')
  const { setup, users, steps, ended } = prepared
  const turns = turnsOf(step, prepared)
  const latenciesMs: number[] = []
  const examples: string[] = []
  let [failed, wrong] = [0, 0]

  async function take([user, round]: readonly [User, number], dueMs: number): Promise<void> {
    const verdict = await steps.take(step, user, round)
    if (verdict === 'failed') {
      failed++
    } else if (verdict === 'right') {
      latenciesMs.push(Number((performance.now() - dueMs).toFixed(2)))
      if (step === 'logout') ended.add(user)
    } else if (++wrong <= EXAMPLES) {
      examples.push(verdict.wrong)
    }
  }

  const startedMs = performance.now()
  if (perSecond === undefined) await atOnce(turns, setup.width, take)
  else await paced(turns, perSecond, take)
  return {
    latenciesMs,
    failed,
    wrong,
    examples,
    seconds: (performance.now() - startedMs) / MS_PER_SECOND,
    sessions: users.filter(({ refresh }) => refresh !== undefined).length,
  }
}

type Take<Turn> = (turn: Turn, dueMs: number) => Promise<void>

/** Takes `width` turns at a time. */
async function atOnce<Turn>(turns: readonly Turn[], width: number, take: Take<Turn>) {
  const rest = turns.values()
  async function next(): Promise<void> {
    for (const turn of rest) await take(turn, performance.now())
  }
  await Promise.all(Array.from({ length: width }, next))
}

/** Takes turns at random times (Poisson). A latency starts when its turn was due. */
async function paced<Turn>(turns: readonly Turn[], perSecond: number, take: Take<Turn>) {
  const taken: Promise<void>[] = []
  let dueMs = performance.now()
  for (const turn of turns) {
    dueMs += (-Math.log(1 - Math.random()) / perSecond) * MS_PER_SECOND
    const waitMs = dueMs - performance.now()
    if (waitMs > 0) await sleep(waitMs)
    taken.push(take(turn, dueMs))
  }
  await Promise.all(taken)
}

serveParent({}, async (question: Question) => {
  if (question.kind === 'step') return run(question.step, question.perSecond)
  prepared = await prepare(question.setup)
  return {}
})
