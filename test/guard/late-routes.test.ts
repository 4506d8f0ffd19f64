/** Apps whose modules declare routes after the first request, as with `import()` in a handler. */
import express from 'express'
import { Hono } from 'hono'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Misconfigured } from '../../src/errors.ts'
import { portcullis as ofExpress } from '../../src/express/index.ts'
import { type GuardOptions, portcullis as ofHono } from '../../src/hono/index.ts'
import { type Surroundings, surroundings } from '../hono/app.ts'
import { listen } from './apps.ts'

let given: Surroundings
beforeAll(async () => {
  given = await surroundings()
})
afterAll(() => given?.redis.close())

interface Started {
  readonly require: (permission: string) => unknown
  readonly reached: string[]
  /** Sends a request of an administrator, or without a token, to the route that is declared before. */
  remove(scope: string | undefined): Promise<number>
  close(): Promise<void>
}

type Options = Partial<GuardOptions> & { readonly ofFunction?: boolean }

const optionsOf = ({ ofFunction, clientAddress: _, ...more }: Options) => {
  const { clientAddress, ...needed } = given.options
  const options = { ...needed, roles: { admin: ['*'], clerk: ['bills:*'] }, ...more }
  return ofFunction === true ? () => options : options
}

async function startHono(more: Options): Promise<Started> {
  const guard = ofHono<object, string, string>(optionsOf(more) as never)
  const reached: string[] = []
  const app = new Hono().use(guard)
  app.delete('/notes', guard.require('notes:delete'), (c) => {
    reached.push('notes')
    return c.body(null, 204)
  })
  const env = { incoming: { socket: { remoteAddress: '192.0.2.1' } } }
  return {
    require: guard.require,
    reached,
    remove: async (scope) =>
      (await app.request('/notes', { method: 'DELETE', headers: await admin(scope) }, env)).status,
    async close() {},
  }
}

async function startExpress(more: Options): Promise<Started> {
  const guard = ofExpress<object, string, string>(optionsOf(more) as never)
  const reached: string[] = []
  const app = express()
  app.post('/notes', guard.require('notes:delete'), (_, res) => {
    reached.push('notes')
    res.status(204).end()
  })
  const { request, close } = await listen(app)
  return {
    require: guard.require,
    reached,
    remove: async (scope) =>
      (await request('/notes', { method: 'POST', headers: await admin(scope) })).status,
    close,
  }
}

const admin = (scope: string | undefined) =>
  scope === undefined ? {} : given.bearer(['admin'], { claims: { scope } })

describe.each([
  ['portcullis/hono', startHono],
  ['portcullis/express', startExpress],
])('%s', (_, start) => {
  test.each([false, true])(
    'refuses a new permission after the first request (options of a function: %s)',
    async (ofFunction) => {
      const { require, remove, close } = await start({ ofFunction })
      // Without the late route, the scope is not one of the app, and does not narrow the role.
      expect(await remove('reports:read')).toBe(204)
      expect(() => require('reports:read')).toThrow(Misconfigured)
      expect(() => require('reports:read')).toThrow(/lateRoutes: true/)
      await close()
    },
  )

  test('accepts a late route after requests without a verified token', async () => {
    const { require, remove, reached, close } = await start({})
    expect(await remove(undefined)).toBe(401)
    expect(() => require('reports:read')).not.toThrow()
    expect(await remove('reports:read')).toBe(403)
    expect(reached).toEqual([])
    await close()
  })

  test('accepts a late route whose permission the roles or another route name', async () => {
    const { require, remove, close } = await start({})
    expect(await remove('notes:delete')).toBe(204)
    expect(() => require('notes:delete')).not.toThrow()
    expect(() => require('bills:pay')).not.toThrow()
    await close()
  })

  test('with `lateRoutes`, a scope narrows before its route is declared, and after', async () => {
    const { require, remove, reached, close } = await start({ lateRoutes: true })
    expect(await remove('reports:read')).toBe(403)
    require('reports:read')
    expect(await remove('reports:read')).toBe(403)
    expect(reached).toEqual([])
    expect(await remove('reports:read notes:delete')).toBe(204)
    expect(await remove('openid profile')).toBe(204)
    await close()
  })

  test('without roles, late routes are accepted: scopes only grant', async () => {
    const { require, remove, close } = await start({ roles: {} })
    expect(await remove('reports:read')).toBe(403)
    expect(() => require('reports:read')).not.toThrow()
    await close()
  })
})
