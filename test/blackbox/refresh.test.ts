/** Refresh tokens with concurrent uses at two gateways. `ROUNDS=100` makes a longer run. */
import { beforeAll, expect, inject, test } from 'vitest'
import { mint } from '../harness/issuer.ts'
import { usualOrLong } from '../harness/long.ts'
import {
  ACCESS_TOKEN,
  createStackClient,
  EXCHANGE,
  postAs,
  type StackClient,
} from './oauth-clients.ts'

const ROUNDS = Number(process.env.ROUNDS ?? usualOrLong(3, 5))
const AT_ONCE = 50

const stack = inject('stack')
let client: StackClient
beforeAll(async () => {
  client = await createStackClient(stack)
})

interface Answer {
  readonly status: number
  readonly access_token?: string
  readonly refresh_token?: string
}

async function requestToken(gateway: string, params: Record<string, string>): Promise<Answer> {
  const response = await postAs(client, `${gateway}/oauth/token`, params)
  return { status: response.status, ...((await response.json()) as object) }
}

async function open(): Promise<Answer> {
  const subject_token = await mint(stack.inlineKey)
  const params = { grant_type: EXCHANGE, subject_token, subject_token_type: ACCESS_TOKEN }
  return requestToken(stack.gateways[0], params)
}

function refresh(index: number, refresh_token: string): Promise<Answer> {
  const gateway = stack.gateways[index % 2] ?? ''
  return requestToken(gateway, { grant_type: 'refresh_token', refresh_token })
}

async function statusOf(index: number, token = ''): Promise<number> {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`${stack.gateways[index % 2]}/orders`, { headers })
  await response.text()
  return response.status
}

test(`${AT_ONCE} parallel refreshes at two gateways, ${ROUNDS} rounds: one successor each; then reuse revokes all [S35, S36, S37]`, {
  timeout: 600_000,
}, async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const first = (await open()).refresh_token ?? ''
    const answers = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, index) => refresh(index, first)),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set(answers.map(({ refresh_token }) => refresh_token)).size).toBe(1)
    const second = answers[0]?.refresh_token ?? ''
    expect(second).not.toBe(first)

    const third = await refresh(round, second)
    expect(third.status).toBe(200)
    expect(await statusOf(round, third.access_token)).toBe(200)
    // Two generations old, so it cannot be a retry.
    expect((await refresh(round + 1, first)).status).toBe(400)
    expect((await refresh(round, third.refresh_token ?? '')).status).toBe(400)
    for (const index of [0, 1]) {
      expect(await statusOf(index, third.access_token)).toBe(401)
      expect(await statusOf(index, answers[0]?.access_token)).toBe(401)
    }
  }
})
