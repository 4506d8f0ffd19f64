/** Return paths: only pages of this host, as every browser reads them. */
import { describe, expect, test } from 'vitest'
import {
  isReturnPath,
  markUnmet,
  returnPathIn,
  signInPath,
  storedReturn,
} from '../../../src/features/sign-in/return-path.ts'

describe('a page of this host is accepted', () => {
  test.each([
    '/',
    '/orders',
    '/orders/7?limit=3&sort=a%20b',
    '/files/a%20b/report.pdf',
    '/oauth/authorize?client_id=x&redirect_uri=https%3A%2F%2Fapp.example%2Fcb&state=%2F%2Fx',
    '/a?next=//evil.example',
    '/a?next=https://evil.example/',
    '/oauth/sessions',
    '/orders#fragment',
    '/app?tab=1#/settings?x=//evil.example#y',
  ])('%s', (path) => {
    expect(isReturnPath(path)).toBe(true)
    expect(new URL(path, 'https://here.example').origin).toBe('https://here.example')
  })
})

describe('everything else leads to the start page [S76]', () => {
  test.each([
    '',
    'orders',
    'https://evil.example/',
    'HTTPS://evil.example',
    '//evil.example',
    '///evil.example',
    '////evil.example/x',
    '/\\evil.example',
    '\\\\evil.example',
    '/\\/evil.example',
    '\\/evil.example',
    '/\t/evil.example',
    '/\n/evil.example',
    '\t//evil.example',
    ' //evil.example',
    '/ /evil.example',
    '/\u0000/evil.example',
    '/\u00a0/evil.example',
    '/%09/evil.example',
    '/%2f/evil.example',
    '/%2F%2Fevil.example',
    '/%5cevil.example',
    '/./evil',
    '/.//evil.example',
    '/a/..//evil.example',
    '/..//evil.example',
    '/%2e%2e//evil.example',
    '/;@evil.example',
    '@evil.example',
    ':80',
    'javascript:alert(1)',
    'java\tscript:alert(1)',
    'data:text/html,x',
    '/javascript:alert(1)\r\nSet-Cookie: x=y',
    '/a\r\nLocation: https://evil.example',
    '/a%0d%0aLocation:x',
    '/#',
    '/#a b',
    '/#\\evil.example',
    '/#"onmouseover=x',
    '//evil.example#/',
    '/oauth/sign-out#/',
    '/／evil.example',
    '/〱evil.example',
    '/\u2044evil.example',
    '?a=b',
    '#a',
    '/a?',
    '/a"onmouseover=x',
    '/<script>',
    `/${'a'.repeat(4_096)}`,
    '/oauth/sign-in',
    '/oauth/sign-in?return_to=%2F',
    '/OAuth/Sign-Out',
    '/oauth/callback?code=x&state=y',
    '/oauth/sign-out',
    '/oauth/backchannel-logout',
  ])('%j', (path) => {
    expect(isReturnPath(path)).toBe(false)
    expect(returnPathIn(path)).toBe('/')
  })
  test('without a path', () => expect(returnPathIn(undefined)).toBe('/'))
})

test('the path of the sign-in contains the demand, and no other host', () => {
  expect(
    signInPath({ returnPath: '/a?b=c', prompt: 'login', maxAgeSeconds: 0, acr: ['mfa', 'pwd'] }),
  ).toBe('/oauth/sign-in?return_to=%2Fa%3Fb%3Dc&prompt=login&max_age=0&acr_values=mfa+pwd')
  expect(signInPath({ returnPath: 'https://evil.example', acr: [] })).toBe(
    '/oauth/sign-in?return_to=%2F',
  )
})

test.each([
  ['/a', '/a?login_unmet=0'],
  ['/a?b', '/a?b&login_unmet=0'],
  ['/a#b?c', '/a?login_unmet=0#b?c'],
  ['/a?b#c#d', '/a?b&login_unmet=0#c#d'],
  ['/a#?login_unmet=0', '/a?login_unmet=0#?login_unmet=0'],
])('the mark of %s is in its query, and is read and removed there', (returnPath, marked) => {
  expect(markUnmet(returnPath, '0')).toBe(marked)
  expect(storedReturn(marked)).toEqual({ returnPath, returnsUnmet: true })
  expect(storedReturn(returnPath)).toEqual({ returnPath, returnsUnmet: false })
})
