/** A guarded app follows the clock of its tests. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Hono } from 'hono'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { ROOT } from '../harness/process.ts'
import { filesBelow } from '../repo/import-graph.ts'
import { guardWith, type Surroundings, surroundings } from './app.ts'

let given: Surroundings
beforeAll(async () => {
  given = await surroundings()
})
afterEach(() => void vi.useRealTimers())
afterAll(() => given?.redis.close())

describe('fake timers that begin after the app was created', () => {
  test('move the clock of the guard: a token expires, and a new one is accepted', async () => {
    const app = new Hono().use(guardWith(given)).get('/', (c) => c.text('reached'))
    const headers = await given.bearer()
    expect((await app.request('/', { headers })).status).toBe(200)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 })
    const refused = await app.request('/', { headers })
    expect(refused.status).toBe(401)
    expect(given.events.at(-1)).toMatchObject({ reason: 'token_rejected:exp' })
    expect(Date.parse(given.events.at(-1)?.time ?? '')).toBe(Date.now())
    expect((await app.request('/', { headers: await given.bearer() })).status).toBe(200)
  })

  test('are not bypassed: no module keeps Date.now itself', () => {
    const kept = filesBelow(ROOT, 'src').filter((file) =>
      readFileSync(join(ROOT, file), 'utf8')
        .split('\n')
        .filter((line) => !/^\s*(?:\*|\/\/|\/\*)/.test(line))
        .some((line) => /(?:=|:|\() ?Date\.now(?!\()/.test(line)),
    )
    expect(kept).toEqual([])
  })
})
