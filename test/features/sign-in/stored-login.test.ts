/** The record of a login in progress, which gateways of several versions share. */
import { expect, test } from 'vitest'
import { OPENED_SECONDS } from '../../../src/features/authorization-code/waiting-request.ts'
import { createLogins, LOGIN_SECONDS } from '../../../src/features/sign-in/login.ts'
import type { Provider } from '../../../src/features/sign-in/provider.ts'
import type { LoginInProgress, SessionStore } from '../../../src/features/sign-in/session-store.ts'

/** What the first version reads. It refuses a record with any other member. */
const MEMBERS = ['issuer', 'returnPath', 'browserHash', 'maxAgeSeconds', 'acr', 'callbackPath']
const PATH = '/oauth/authorize?client_id=a&request_uri=b'

test('a demand whose failure returns adds no member to it', async () => {
  const stored: LoginInProgress[] = []
  const store = {
    beginLogin: async (_hash: string, login: LoginInProgress) => void stored.push(login),
  } as unknown as SessionStore
  const provider = {
    issuer: 'https://idp.test',
    callbackPath: async () => '/oauth/callback',
    authorizationUrl: async () => new URL('https://idp.test/authorize'),
  } as unknown as Provider
  const logins = createLogins({ providers: [provider], store })
  for (const returnsUnmet of [true, false])
    await logins.start(provider, { returnPath: PATH, acr: ['mfa'], returnsUnmet }, new Map())
  for (const login of stored) {
    const members = Object.keys(JSON.parse(JSON.stringify(login)))
    expect(members.filter((name) => !MEMBERS.includes(name))).toEqual([])
  }
  expect(stored.map(({ returnPath }) => returnPath)).toEqual([`${PATH}&login_unmet=0`, PATH])
})

test('a request that waits for a login is stored for at least as long as the login', () => {
  expect(OPENED_SECONDS).toBeGreaterThanOrEqual(LOGIN_SECONDS)
})
