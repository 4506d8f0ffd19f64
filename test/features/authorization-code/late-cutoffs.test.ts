/** Revocations that only the control lane has yet, or only the lane of the user. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { revokedBeforeKey, revokedTokenKey } from '../../../src/access/revocation/revocation.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { laneIndex } from '../../../src/redis/lanes.ts'
import { ISSUER } from '../../harness/issuer.ts'
import { namesInLanes } from '../../harness/lanes.ts'
import { type CodeGateway, newVerifier, PUBLIC_URL, startCodeGateway } from './code-gateway.ts'

const LANES = 4

let gateway: CodeGateway
beforeAll(async () => {
  gateway = await startCodeGateway({}, {}, [], {}, LANES)
})
afterAll(() => gateway?.close())

/** Stores in one lane alone what a gateway leaves there that cannot reach the other lane. */
async function during<Result>(name: string, value: number, act: () => Promise<Result>) {
  await gateway.redis.direct.set(name, value, 'EX', 60)
  try {
    return await act()
  } finally {
    await gateway.redis.direct.del(name)
  }
}

const cutoff = () => revokedBeforeKey(DEFAULT_KEYS, 'subject', ISSUER, 'alice')
const nowSeconds = () => Math.floor(Date.now() / 1000)

test('no code gives a token that is newer than a cutoff in the control lane [S33]', async () => {
  const [id, verifier, cookie] = [await gateway.createClient(), newVerifier(), gateway.signIn()]
  const code = await gateway.codeFor(gateway.requestOf(id, verifier), cookie)
  const { status, body } = await during(await cutoff(), nowSeconds(), () =>
    gateway.redeem(id, code, verifier),
  )
  expect([status, body.error]).toEqual([400, 'invalid_grant'])
  // The refused code was not used.
  expect((await gateway.redeem(id, code, verifier)).status).toBe(200)
})

test.each(['a cutoff of the user', 'the end of the browser session'])(
  'a session that only the control lane has ended, by %s, gets no code [S33]',
  async (which) => {
    const [id, cookie] = [await gateway.createClient(), gateway.signIn()]
    const params = gateway.requestOf(id, newVerifier())
    const page = await gateway.authorize(params, cookie)
    const session = createHash('sha256').update(cookie).digest('base64url')
    const name = which.startsWith('the end')
      ? revokedTokenKey(DEFAULT_KEYS, session)
      : await cutoff()
    const decided = await during(name, nowSeconds(), () => gateway.decide(page, cookie))
    expect([decided.answer.get('code'), decided.answer.get('error')]).toEqual([
      null,
      'login_required',
    ])
  },
)

const PLACES = {
  'the control lane': (name: string) => name,
  'the lane of the user': (name: string) =>
    namesInLanes(name, LANES)[1 + laneIndex('alice', LANES)] ?? '',
}

/** What ends a browser session, by the name of its key. */
const ENDS = {
  'its end': (cookie: string) =>
    revokedTokenKey(DEFAULT_KEYS, createHash('sha256').update(cookie).digest('base64url')),
  'a logout at its provider': () =>
    revokedBeforeKey(DEFAULT_KEYS, 'session', PUBLIC_URL, 'provider-session'),
  'a cutoff of the client of its login': () =>
    revokedBeforeKey(DEFAULT_KEYS, 'client', PUBLIC_URL, 'provider-client'),
}

test.each(
  Object.keys(ENDS).flatMap((end) => Object.keys(PLACES).map((place) => [end, place] as const)),
)('the code of a browser session is refused after %s, if only %s has it', async (end, place) => {
  const [id, verifier] = [await gateway.createClient(), newVerifier()]
  const cookie = gateway.signIn({ session: 'provider-session', client: 'provider-client' })
  const code = await gateway.codeFor(gateway.requestOf(id, verifier), cookie)
  const name = await ENDS[end as keyof typeof ENDS](cookie)
  const key = PLACES[place as keyof typeof PLACES](name)
  const { status, body } = await during(key, nowSeconds(), () => gateway.redeem(id, code, verifier))
  expect([status, body.error]).toEqual([400, 'invalid_grant'])
  // A cutoff of an earlier login refuses nothing.
  const redeem = () => gateway.redeem(id, code, verifier)
  const again = end === 'its end' ? await redeem() : await during(key, nowSeconds() - 100, redeem)
  expect(again.status, again.text).toBe(200)
})

test('the record of a code has only members that the earlier version reads', async () => {
  await gateway.redis.direct.flushall()
  const [id, cookie] = [await gateway.createClient(), gateway.signIn({ session: 'sid' })]
  await gateway.codeFor(gateway.requestOf(id, newVerifier()), cookie)
  const [key = ''] = await gateway.redis.direct.keys('pc:*:code:*')
  const record = JSON.parse((await gateway.redis.direct.hget(key, 'record')) ?? '{}')
  const members = [
    ...['session', 'redirectUri', 'challenge', 'refresh'],
    ...['dpopBound', 'browserSession', 'familyAttempt'],
  ]
  expect(Object.keys(record).filter((name) => !members.includes(name))).toEqual([])
  expect(record.browserSession).toBeDefined()
})
