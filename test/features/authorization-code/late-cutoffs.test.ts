/** Revocations that the lane of a user does not have yet, because a gateway could not reach it. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { revokedBeforeKey, revokedTokenKey } from '../../../src/access/revocation/revocation.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { ISSUER } from '../../harness/issuer.ts'
import { type CodeGateway, newVerifier, startCodeGateway } from './code-gateway.ts'

let gateway: CodeGateway
beforeAll(async () => {
  gateway = await startCodeGateway({}, {}, [], {}, 4)
})
afterAll(() => gateway?.close())

/** Stores in the control lane alone what a gateway leaves there that cannot reach the other lane. */
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
