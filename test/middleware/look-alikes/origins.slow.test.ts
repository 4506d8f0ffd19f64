/**
 * A table of policy, origin and spelling: no other spelling of a strict route lets an unauthorized
 * caller reach its handler.
 */
import { Agent, request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createOrigin } from '../../../src/origin/origin.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { startGateway, type TestGateway } from '../../rows/gateway.ts'
import { ACCEPTED_SPELLINGS } from './accepted-spellings.ts'
import { ORIGINS, type RunningOrigin, startOrigins } from './origins.ts'
import { type Spelling, spellingsOf } from './spellings.ts'

/**
 * A strict route, the less strict route below it, and a request of the strict route with one name
 * marked.
 */
const CASES = [
  ['/api/admin', '/api/*', '/api/{admin}'],
  ['/users/export', '/users/:id', '/users/{export}'],
  ['/t/:tenant/settings', '/t/:tenant/*', '/t/acme/{settings}'],
  ['/files/administration/*', '/files/*', '/files/{administration}/list'],
  ['/docs/:page', '/docs/*', '/docs/{intro}'],
  ['/:area/keys', '/:area/:name', '/internal/{keys}'],
] as const
const PATTERNS = CASES.flatMap((patterns): readonly string[] => patterns.slice(0, 2))

/** Names that no server treats as a literal of the table. */
const OTHERS = ['0190a4b0-5c1e-7f3a', 'report-2.pdf', 'administrators', 'Admin2', 'exports', 'v1.2']

const route = (path: string, permission: string) => ({ method: 'GET' as const, path, permission })
const policy = definePolicy({
  roles: { reader: ['things:read'], admin: ['things:*'] },
  limits: {},
  routes: CASES.flatMap(([strict, loose]) => [
    route(strict, 'things:administer'),
    route(loose, 'things:read'),
  ]),
})

const agent = new Agent({ keepAlive: true })
let origins: readonly RunningOrigin[]
let gateway: TestGateway
let origin = ''
/** Handlers of the origin that requests through the gateway reached. */
let reached: string[] = []

beforeAll(async () => {
  origins = await startOrigins(PATTERNS)
  gateway = await startGateway(policy, {
    async send(sent) {
      const answer = await createOrigin({ url: origin }).send(sent)
      reached.push(await answer.clone().text())
      return answer
    },
  })
})
afterAll(async () => {
  agent.destroy()
  await gateway?.close()
  await Promise.all((origins ?? []).map((running) => running.close()))
})

/** Returns the handler of an origin that a path reaches without the gateway. */
function handlerOf({ port }: RunningOrigin, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, agent }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => resolve(text))
    })
    sent.on('error', reject).end()
  })
}

/** The spellings that each origin accepts. They do not change, and several tests need them. */
const found = new Map<string, Promise<readonly Spelling[]>>()

/** Returns the spellings that an origin accepts for a strict route. */
function acceptedBy(
  running: RunningOrigin,
  strict: string,
  marked: string,
): Promise<readonly Spelling[]> {
  const name = `${running.name} ${strict}`
  const accepted = found.get(name) ?? acceptedNow(running, strict, marked)
  found.set(name, accepted)
  return accepted
}

async function acceptedNow(running: RunningOrigin, strict: string, marked: string) {
  const accepted: Spelling[] = []
  for (const spelling of spellingsOf(marked))
    if ((await handlerOf(running, spelling.path)) === strict) accepted.push(spelling)
  return accepted
}

async function requestAs(path: string, roles: readonly string[]) {
  reached = []
  const status = await gateway.send({ path, token: await gateway.token({ roles }) })
  return { status, reached }
}

describe.each(ORIGINS)('before %s [S50, S67]', (name) => {
  const named = (wanted: string) => origins.find((one) => one.name === wanted) as RunningOrigin

  test('without the gateway, these spellings reach a strict route', async () => {
    const kinds = new Set<string>()
    for (const [strict, , marked] of CASES) {
      const exact = await acceptedBy(named('Hono'), strict, marked)
      const isExact = ({ path }: Spelling) => exact.some((spelling) => spelling.path === path)
      for (const spelling of await acceptedBy(named(name), strict, marked))
        if (!isExact(spelling)) kinds.add(spelling.kind)
    }
    expect([...kinds].sort()).toEqual(ACCEPTED_SPELLINGS[name])
  })

  test.each(CASES)(
    'no spelling of %s reaches it for a caller who may only use %s',
    async (strict, _, marked) => {
      origin = named(name).url
      for (const { path, kind } of await acceptedBy(named(name), strict, marked)) {
        const { status, reached } = await requestAs(path, ['reader'])
        expect(reached, `${kind}: ${path}`).toEqual([])
        expect([400, 403, 404], `${kind}: ${path}`).toContain(status)
      }
    },
  )

  test.each(CASES)(
    '%s answers only authorized callers, and %s answers every caller',
    async (strict, loose, marked) => {
      origin = named(name).url
      const path = marked.replace(/[{}]/g, '')
      expect(await requestAs(path, ['admin'])).toEqual({ status: 200, reached: [strict] })
      expect(await requestAs(path, ['reader'])).toEqual({ status: 403, reached: [] })
      const other = loose.replace(/^\/:area/, '/internal').replace(':tenant', 'acme')
      for (const rest of OTHERS) {
        const below = other.replace(/\*$|:\w+$/, strict === '/docs/:page' ? `de/${rest}` : rest)
        expect(await requestAs(below, ['reader']), below).toEqual({ status: 200, reached: [loose] })
      }
    },
  )
})
