/** Guards of modules that a framework loads late: Next loads a `route.ts` with its first request. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GuardOptions, portcullis } from '../../src/fetch/index.ts'
import { type Surroundings, surroundings } from '../hono/app.ts'

let given: Surroundings
beforeAll(async () => {
  given = await surroundings()
})
afterAll(() => given?.redis.close())

const ADMIN = { roles: { admin: ['*'] } }

const requestWith = async (scope: string, url = 'http://localhost/notes/1') =>
  new Request(url, { headers: await given.bearer(['admin'], { claims: { scope } }) })

const isFunction = [
  ['fixed options', false],
  ['options that are a function', true],
] as const

const guardOf = (more: Partial<GuardOptions>, ofFunction: boolean) => {
  const { clientAddress, ...needed } = given.options
  const options = { ...needed, clientAddress: () => '192.0.2.1', ...more }
  return portcullis<object, string, string>(ofFunction ? () => options : options)
}

test.each(isFunction)(
  'with %s, a scope narrows, also where no module with its permission is loaded',
  async (_, ofFunction) => {
    const reached: string[] = []
    const guard = guardOf(ADMIN, ofFunction)
    const remove = guard.require('notes:delete').handle((request) => {
      reached.push(request.url)
      return new Response('deleted')
    })
    for (const scope of ['notes:read', 'openid notes:read', 'notes:read https://idp.example/x'])
      expect((await remove(await requestWith(scope))).status, scope).toBe(403)
    expect(reached).toEqual([])
    for (const scope of ['notes:delete', 'notes:*', 'notes:read notes:delete'])
      expect((await remove(await requestWith(scope))).status, scope).toBe(200)
  },
)

test('scopes that no permission can have as a name do not narrow', async () => {
  const read = guardOf(ADMIN, false)
    .require('notes:read')
    .handle(() => new Response('notes'))
  for (const scope of ['openid profile email', 'https://idp.example/userinfo.email', ''])
    expect((await read(await requestWith(scope))).status, scope).toBe(200)
})

test.each(isFunction)(
  'with %s, a late module that names an unknown limit does not load',
  async (_, ofFunction) => {
    const guard = guardOf({ ...ADMIN, limits: { writes: '9/min' } }, ofFunction)
    const first = guard.authenticated().handle(() => new Response('first'))
    expect((await first(await requestWith('openid'))).status).toBe(200)
    expect(() => guard.require('notes:read').limit('wirtes')).toThrow(
      /unknown limit "wirtes"; the options have "writes"/,
    )
  },
)
