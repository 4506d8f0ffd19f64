import { Hono } from 'hono'
import { expect, test } from 'vitest'
import { ownCookies } from '../../../src/features/sign-in/own-cookies.ts'

const NAMES = ['__Host-portcullis-session', '__Host-portcullis-login-*']

/** Returns what a browser gets of the cookies that an origin sets. */
async function kept(cookies: readonly string[]): Promise<string[]> {
  const app = new Hono()
  app.get('/', ownCookies({ names: NAMES }), () => {
    const headers = new Headers()
    for (const cookie of cookies) headers.append('Set-Cookie', cookie)
    return new Response('page', { headers })
  })
  return (await app.request('/')).headers.getSetCookie()
}

test.each([
  '__Host-portcullis-session=x; Secure; Path=/',
  '__Host-portcullis-login-abcdefgh=x',
  '\t__Host-portcullis-session =x',
  // A browser sends a cookie without a name as its value alone (RFC 6265bis section 5.8.3).
  '=__Host-portcullis-session=x; Secure; Path=/',
  ' = __Host-portcullis-login-abcdefgh=x',
  '=\t=__Host-portcullis-session=x',
])('an origin cannot set %j', async (cookie) => {
  expect(await kept(['theme=dark', cookie, 'a=1'])).toEqual(['theme=dark', 'a=1'])
})

test('other cookies of an origin, also without a name, arrive as they were sent', async () => {
  const cookies = ['=dark; Path=/', 'dark', 'a==', 'b=__Host-portcullis-session=x', 'c="=1; =2"']
  expect(await kept(cookies)).toEqual(cookies)
  expect(await kept(['__Host-portcullis-session=x', ...cookies])).toEqual(cookies)
})
