import { describe, expect, it } from 'vitest'
import { createProver, goodRequest, outcome, verifierOf } from './prover.ts'

const GATEWAY = 'https://gateway.test'
const prover = await createProver()
const OTHER_TARGET = 'invalid_dpop_proof:htu'

/** Returns how a gateway at `publicUrl` decides about a proof for `htu`, in a request of `url`. */
async function decide(htu: string, url: string, publicUrl = GATEWAY): Promise<string> {
  const header = await prover.proof({ htu })
  return outcome(() => verifierOf({ publicUrl }).verify({ ...goodRequest, url, header }))
}

describe('check 9: the URL of a proof', () => {
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
  ])('%s is the target of %s', async (htu, path) => {
    expect(await decide(htu, `${GATEWAY}${path}`)).toBe('ok')
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
  ])('%s is not the target of %s', async (htu, path) => {
    expect(await decide(htu, `${GATEWAY}${path}`)).toBe(OTHER_TARGET)
  })

  it('a request without a valid URL has no target', async () => {
    for (const url of ['/orders', '', 'https://[gateway.test/orders'])
      expect(await decide(`${GATEWAY}/orders`, url), url).toBe(OTHER_TARGET)
  })

  it('the public URL counts, not the one by which the Worker was called', async () => {
    const reached = 'https://portcullis.someone.workers.dev/orders'
    expect(await decide(`${GATEWAY}/orders`, reached)).toBe('ok')
    expect(await decide(reached, reached)).toBe(OTHER_TARGET)
  })

  it.each(['127.0.0.1', '127.8.9.10', 'localhost', '[::1]'])(
    'on the loopback host %s, the called host name counts as well',
    async (host) => {
      const reached = `http://${host}:8788/orders`
      expect(await decide(reached, reached, 'http://127.0.0.1:8787')).toBe('ok')
      expect(await decide('http://127.0.0.1:8787/orders', reached, 'http://127.0.0.1:8787')).toBe(
        'ok',
      )
      expect(await decide(`http://${host}:8789/orders`, reached)).toBe(OTHER_TARGET)
      expect(await decide(reached, `${GATEWAY}/orders`)).toBe(OTHER_TARGET)
    },
  )

  it.each(['128.0.0.1', 'localhost.evil.test', '127.0.0.1.evil.test', '[::2]', '10.0.0.1'])(
    '%s is not a loopback host',
    async (host) => {
      const reached = `http://${host}/orders`
      expect(await decide(reached, reached)).toBe(OTHER_TARGET)
    },
  )

  it.each(['127.0.0.1', 'localhost', '[::1]:8787'])(
    'a request with the Host %s has no loopback target if the public URL has another host',
    async (host) => {
      const reached = `http://${host}/orders`
      expect(await decide(reached, reached)).toBe(OTHER_TARGET)
      expect(await decide(reached, reached, 'http://127.0.0.1.gateway.test')).toBe(OTHER_TARGET)
    },
  )

  it('a proof for another path is refused', async () => {
    const header = await prover.proof({ htu: `${GATEWAY}/reports` })
    const attempt = () => verifierOf().verify({ ...goodRequest, header })
    expect(await outcome(attempt)).toBe('invalid_dpop_proof:htu')
  })
})
