import { describe, expect, test } from 'vitest'
import type { SignaturesDefinition } from '../../../src/features/signatures/definition.ts'
import { signatures } from '../../../src/features/signatures/index.ts'
import { inspected } from '../../inspection/app.ts'

/** Sends a GET with these headers to a route that enforces signatures. */
async function statusOf(
  headers: Readonly<Record<string, string>>,
  settings: SignaturesDefinition = {},
) {
  const { send, reached } = inspected({ signatures: signatures({ mode: 'enforce', ...settings }) })
  const { status } = await send('', undefined, undefined, undefined, headers)
  expect(reached).toHaveLength(status === 200 ? 1 : 0)
  return status
}

/** Attacks as clients write them into headers. */
const ATTACKS = [
  '() { :; }; /bin/bash -c "id"',
  "x' union select login, password from users -- ",
  '<script>alert(1)</script>',
  'x%27%20or%201%3D1%20--%20',
]

describe('an attack in a header that origins log never reaches the handler [S63]:', () => {
  test.each(ATTACKS)('%s', async (attack) => {
    expect(await statusOf({ 'User-Agent': attack })).toBe(403)
    expect(await statusOf({ Referer: attack })).toBe(403)
    expect(await statusOf({ 'X-Trace': attack })).toBe(200)
    expect(await statusOf({ 'X-Trace': attack }, { headers: ['x-trace'] })).toBe(403)
    expect(await statusOf({ 'X-Anything': attack }, { headers: ['Via', 'X-*'] })).toBe(403)
  })

  test('no header is searched if the list is empty', async () => {
    for (const attack of ATTACKS)
      expect(await statusOf({ 'User-Agent': attack }, { headers: [] })).toBe(200)
  })

  test('scores of headers and of the query are summed', async () => {
    const { send, reasons } = inspected({ signatures: signatures({ mode: 'enforce' }) })
    const headers = { 'User-Agent': '(document.cookie)' }
    const { status } = await send('?a=%3Ciframe%3E', undefined, undefined, undefined, headers)
    expect(status).toBe(403)
    expect(reasons).toEqual(['cross_site_scripting.active_element'])
  })
})

test('headers of browsers, libraries and intranets are accepted', async () => {
  const agents = [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36',
    'Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Mobile/15E148 Safari/604.1',
    'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)',
    'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm) Chrome/116.0.1938.76 Safari/537.36',
    'curl/8.16.0',
    'python-requests/2.32.5',
    'Java/21.0.8',
    'node',
    'PostmanRuntime/7.49.0',
    'okhttp/5.2.1',
    'Wget/1.25.0',
    'GuzzleHttp/7 curl/8.5.0 PHP/8.4.1',
    'aws-sdk-java/2.34.0 md/io#sync md/http#Apache ua/2.1 os/Linux#5.10 lang/java#21.0.8 md/OpenJDK_64-Bit_Server_VM#21',
    'Dalvik/2.1.0 (Linux; U; Android 15; Pixel 9 Build/AP4A.250105.002)',
  ]
  for (const agent of agents)
    expect([agent, await statusOf({ 'User-Agent': agent })]).toEqual([agent, 200])
  const referers = [
    'http://localhost:3000/orders?filter=a%20or%20b',
    'http://10.0.0.7/wiki/index.php?title=Union_Square',
    'https://www.example.com/search?q=it%27s+a+%22select%22+few&page=2',
    'android-app://com.google.android.gm/',
  ]
  for (const referer of referers)
    expect([referer, await statusOf({ Referer: referer })]).toEqual([referer, 200])
  const forwarded = {
    'X-Forwarded-For': '10.0.0.7, 127.0.0.1',
    'X-Forwarded-Host': 'localhost:8080',
    'X-Original-URL': 'http://127.0.0.1/orders',
    'X-Amzn-Trace-Id': 'Root=1-67891233-abcdef012345678912345678;Parent=463ac35c9f6413ad;Sampled=1',
  }
  expect(await statusOf(forwarded, { headers: ['X-*'] })).toBe(200)
})

test('a name that no header can have is a mistake', () => {
  for (const name of ['', '*', 'user agent', 'X-*-Id', 'a:b', 'x'.repeat(200)])
    expect(() => signatures({ headers: [name] })).toThrow(
      /inspect\.signatures\.headers\[0\]: .*X-\*/,
    )
})
