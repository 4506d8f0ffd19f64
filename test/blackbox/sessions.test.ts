/**
 * Complete sessions, many at once, each over several gateways: exchange, call, refresh, call,
 * logout, with every response checked. `SESSIONS=1000 GATEWAYS=4` makes a longer run.
 */
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { mint } from '../harness/issuer.ts'
import { usualOrLong } from '../harness/long.ts'
import { NEVER } from '../harness/never.ts'
import { freePort, type Running, run } from '../harness/process.ts'
import {
  ACCESS_TOKEN,
  createStackClient,
  EXCHANGE,
  postAs,
  type StackClient,
} from './oauth-clients.ts'

const SESSIONS = Number(process.env.SESSIONS ?? usualOrLong(40, 200))
const GATEWAYS = Number(process.env.GATEWAYS ?? 2)
/** What two cores can serve beside the tests. */
const AT_ONCE = 20

const stack = inject('stack')
const gateways: string[] = [...stack.gateways]
const more: Running[] = []
let client: StackClient
beforeAll(async () => {
  client = await createStackClient(stack)
  while (gateways.length < GATEWAYS) {
    const port = await freePort()
    const env = { ...stack.env, PORT: String(port) }
    more.push(await run(stack.command, env, 'Portcullis is ready on'))
    gateways.push(`http://127.0.0.1:${port}`)
  }
})
afterAll(async () => {
  await Promise.all(more.map((gateway) => gateway.stop()))
})

async function requestToken(gateway: string, params: Record<string, string>, path = 'token') {
  const response = await postAs(client, `${gateway}/oauth/${path}`, params)
  const text = await response.text()
  return { status: response.status, body: text === '' ? {} : JSON.parse(text) }
}

async function call(gateway: string, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`${gateway}/orders`, { headers })
  await response.text()
  return response.status
}

/** Runs one session. Returns the unexpected responses. */
async function live(index: number): Promise<string[]> {
  const wrong: string[] = []
  const at = (step: number) => gateways[(index + step) % gateways.length] ?? ''
  const check = (step: string, status: number, expected: number) => {
    if (status !== expected) wrong.push(`${index} ${step}: ${status}, not ${expected}`)
  }
  const opened = await requestToken(at(0), {
    grant_type: EXCHANGE,
    subject_token: await mint(stack.inlineKey),
    subject_token_type: ACCESS_TOKEN,
  })
  check('exchange', opened.status, 200)
  check('call', await call(at(1), opened.body.access_token), 200)
  const { refresh_token } = opened.body
  const next = await requestToken(at(0), { grant_type: 'refresh_token', refresh_token })
  check('refresh', next.status, 200)
  check('call with the next token', await call(at(2), next.body.access_token), 200)
  const ended = await requestToken(at(1), { token: next.body.refresh_token }, 'revoke')
  check('logout', ended.status, 200)
  for (const gateway of gateways) {
    for (const { body } of [opened, next])
      check('call after logout', await call(gateway, body.access_token), 401)
  }
  const revived = { grant_type: 'refresh_token', refresh_token: next.body.refresh_token }
  check('refresh after logout', (await requestToken(at(0), revived)).status, 400)
  return wrong
}

test('sessions over several gateways, many at a time: every response is correct [S30]', {
  timeout: 600_000,
}, async () => {
  const wrong: string[] = []
  let started = 0
  const worker = async () => {
    while (started < SESSIONS) wrong.push(...(await live(started++)))
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  expect(started).toBe(SESSIONS)
  expect(wrong, NEVER).toEqual([])
})
