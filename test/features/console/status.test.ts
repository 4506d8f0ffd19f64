/** What the state of all gateways reads from their metrics. */
import { expect, test } from 'vitest'
import { requestsIn } from '../../../src/features/console/status.ts'

const line = (route: string, decision: string, count: number) =>
  `portcullis_requests_total{route="${route}",decision="${decision}",code="x",status="200"} ${count}\n`

test('requests are counted by their decision, whatever their route contains', () => {
  const text = [
    '# TYPE portcullis_requests_total counter\n',
    line('GET /a', 'allow', 5),
    line('GET /b', 'allow', 2),
    line('GET /,decision=\\"allow\\",', 'deny', 30),
    line('GET /} 9', 'error', 4),
    'portcullis_cache_requests_total{cache="tokens",outcome="hit"} 700\n',
  ].join('')
  expect(requestsIn(text)).toEqual({ allow: 7, deny: 30, error: 4 })
  expect(requestsIn('')).toEqual({ allow: 0, deny: 0, error: 0 })
})
