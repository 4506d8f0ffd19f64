import { describe, expect, it } from 'vitest'
import { isTarget } from '../../../src/access/tokens/dpop.ts'
import { createProver, goodRequest, outcome, verifierOf } from './prover.ts'

const GATEWAY = 'https://gateway.test'
const prover = await createProver()

describe('check 9: the URL of a proof', () => {
  const target = (htu: string, path = '/orders') => isTarget(htu, `${GATEWAY}${path}`, GATEWAY)

  it.each([
    [`${GATEWAY}/orders`, '/orders'],
    [`${GATEWAY}/orders`, '/orders?cursor=a&limit=1'],
    [`${GATEWAY}/orders?of=another#page`, '/orders?cursor=a'],
    ['HTTPS://GATEWAY.test:443/orders', '/orders'],
    [`${GATEWAY}/a/../orders`, '/orders'],
    [`${GATEWAY}/%6Frders/%7Ea`, '/orders/~a'],
    [`${GATEWAY}/caf%c3%a9`, '/caf%C3%A9'],
    [`${GATEWAY}/orders`, '/%6Frders'],
    [`${GATEWAY}/a%2fb`, '/a%2Fb'],
    [`${GATEWAY}/a/%2E%2e/orders`, '/orders'],
    [`${GATEWAY}/orders?`, '/orders'],
    [`${GATEWAY}/orders#`, '/orders?'],
    [`${GATEWAY}?of=another`, '/?cursor=a'],
    [`${GATEWAY}`, '/'],
  ])('%s is the target of %s', (htu, path) => {
    expect(target(htu, path)).toBe(true)
  })

  it.each([
    ['http://gateway.test/orders', '/orders'],
    ['https://gateway.test:8443/orders', '/orders'],
    ['https://gateway.test:80/orders', '/orders'],
    ['http://gateway.test:443/orders', '/orders'],
    ['https://gateway.test./orders', '/orders'],
    ['https://api.gateway.test/orders', '/orders'],
    [`${GATEWAY}/orders%3Fcursor=a`, '/orders?cursor=a'],
    [`${GATEWAY}/orders%23page`, '/orders'],
    [`${GATEWAY}/?/orders`, '/orders'],
    [`${GATEWAY}/caf%C3%A9`, '/cafe'],
    ['https://evil.test/orders', '/orders'],
    ['https://gateway.test.evil.test/orders', '/orders'],
    ['https://gateway.test@evil.test/orders', '/orders'],
    ['https://alice:secret@gateway.test/orders', '/orders'],
    ['https://alice@gateway.test/orders', '/orders'],
    ['https://:secret@gateway.test/orders', '/orders'],
    ['https://gateway.test:99999/orders', '/orders'],
    ['https://[gateway.test/orders', '/orders'],
    [`${GATEWAY}/orders/`, '/orders'],
    [`${GATEWAY}/Orders`, '/orders'],
    [`${GATEWAY}/order`, '/orders'],
    [`${GATEWAY}//orders`, '/orders'],
    [`${GATEWAY}/a%2Fb`, '/a/b'],
    [`${GATEWAY}/a%252Fb`, '/a%2Fb'],
    ['https:\\\\gateway.test\\orders', '/orders'],
    [` ${GATEWAY}/orders`, '/orders'],
    [`${GATEWAY}/or\tders`, '/orders'],
    ['/orders', '/orders'],
    ['//gateway.test/orders', '/orders'],
    ['ftp://gateway.test/orders', '/orders'],
    ['https://', '/orders'],
    ['', '/orders'],
  ])('%s is not the target of %s', (htu, path) => {
    expect(target(htu, path)).toBe(false)
  })

  it('a request without a valid URL has no target', () => {
    for (const url of ['/orders', '', 'https://[gateway.test/orders'])
      expect(isTarget(`${GATEWAY}/orders`, url, GATEWAY), url).toBe(false)
  })

  it('the public URL counts, not the one by which the Worker was called', () => {
    const reached = 'https://portcullis.someone.workers.dev/orders'
    expect(isTarget(`${GATEWAY}/orders`, reached, GATEWAY)).toBe(true)
    expect(isTarget(reached, reached, GATEWAY)).toBe(false)
  })

  it.each(['127.0.0.1', '127.8.9.10', 'localhost', '[::1]'])(
    'on the loopback host %s, the called host name counts as well',
    (host) => {
      const reached = `http://${host}:8788/orders`
      expect(isTarget(reached, reached, 'http://127.0.0.1:8787')).toBe(true)
      expect(isTarget('http://127.0.0.1:8787/orders', reached, 'http://127.0.0.1:8787')).toBe(true)
      expect(isTarget(`http://${host}:8789/orders`, reached, GATEWAY)).toBe(false)
      expect(isTarget(reached, `${GATEWAY}/orders`, GATEWAY)).toBe(false)
    },
  )

  it.each(['128.0.0.1', 'localhost.evil.test', '127.0.0.1.evil.test', '[::2]', '10.0.0.1'])(
    '%s is not a loopback host',
    (host) => {
      const reached = `http://${host}/orders`
      expect(isTarget(reached, reached, GATEWAY)).toBe(false)
    },
  )

  it.each(['127.0.0.1', 'localhost', '[::1]:8787'])(
    'a request with the Host %s has no loopback target if the public URL has another host',
    (host) => {
      const reached = `http://${host}/orders`
      expect(isTarget(reached, reached, GATEWAY)).toBe(false)
      expect(isTarget(reached, reached, 'http://127.0.0.1.gateway.test')).toBe(false)
    },
  )

  it('a proof for another path is refused', async () => {
    const header = await prover.proof({ htu: `${GATEWAY}/reports` })
    const attempt = () => verifierOf().verify({ ...goodRequest, header })
    expect(await outcome(attempt)).toBe('invalid_dpop_proof:htu')
  })
})
