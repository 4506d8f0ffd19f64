/** Header names that servers trust, through the gateway as a user starts it. */
import { beforeEach, expect, inject, test } from 'vitest'
import { forget, recordsOf } from '../harness/control.ts'
import { mint } from '../harness/issuer.ts'
import { getRaw } from '../harness/raw.ts'
import { ORDINARY_HEADERS, spellingsOf, TRUSTED_HEADERS } from '../middleware/header-names.ts'

const stack = inject('stack')
const [here] = stack.gateways
/** Node, which runs the front of `npm start`, accepts 16 KB of headers. */
const LINES_PER_REQUEST = 150
/** Headers that authenticate the caller at this gateway. */
const CREDENTIALS: ReadonlySet<string> = new Set(['Authorization', 'DPoP'])

beforeEach(() => forget(stack.origin))

/** Sends the lines in as few requests as possible, as an authenticated caller. */
async function send(lines: readonly string[]): Promise<void> {
  const token = await mint(stack.inlineKey, { claims: { sub: 'alice', roles: ['reader'] } })
  for (let at = 0; at < lines.length; at += LINES_PER_REQUEST) {
    const some = lines.slice(at, at + LINES_PER_REQUEST)
    const { status } = await getRaw(here, '/orders', [`Authorization: Bearer ${token}`, ...some])
    expect(status).toBe(200)
  }
}

test.each(Object.entries(TRUSTED_HEADERS))(
  'no name of %s reaches the origin, in any spelling [S73]',
  async (_topic, names) => {
    const sent = names.filter((name) => !CREDENTIALS.has(name)).flatMap(spellingsOf)
    await send(sent.map((name) => `${name}: forged`))
    const records = await recordsOf(stack.origin)
    expect(records).toHaveLength(Math.ceil(sent.length / LINES_PER_REQUEST))
    for (const { headers } of records) {
      expect(JSON.stringify(headers)).not.toContain('forged')
      expect(headers['x-auth-subject']).toEqual(['alice'])
    }
  },
)

test.each(Object.entries(ORDINARY_HEADERS))(
  'names of %s reach the origin [S73]',
  async (_topic, names) => {
    await send(names.map((name) => `${name}: value of ${name}`))
    const records = await recordsOf(stack.origin)
    const arrived = new Set(
      records.flatMap(({ headers }) =>
        Object.entries(headers).map(([name, values]) => `${name}: ${values?.join()}`),
      ),
    )
    const lost = names.filter((name) => !arrived.has(`${name.toLowerCase()}: value of ${name}`))
    // `wrangler dev` sets `Accept-Encoding` itself.
    expect(lost.filter((name) => name !== 'Accept-Encoding')).toEqual([])
  },
)
