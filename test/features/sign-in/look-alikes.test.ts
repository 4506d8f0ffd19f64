/** A demand of a login cannot be avoided by another spelling of the path. */
import { expect, test } from 'vitest'
import { signIn } from '../../../src/features/sign-in/index.ts'
import type { AuthenticationDemand } from '../../../src/policy/definition.ts'
import { findLookAlikes } from '../../../src/policy/look-alikes.ts'
import { definePolicy } from '../../../src/policy/policy.ts'

type Session = 'browser' | AuthenticationDemand | undefined

/** Whether spellings of `/admin` that match `/:page` are refused. */
function refuses(ofAdmin: Session, ofPage: Session): boolean {
  const row = (path: string, session: Session) =>
    ({ method: 'GET', path, permission: 'a:b', ...(session && { session }) }) as const
  const { routes } = definePolicy({
    roles: {},
    limits: {},
    features: [signIn()],
    routes: [row('/admin', ofAdmin), row('/:page', ofPage)],
  })
  const page = routes.find(({ path }) => path === '/:page')
  return page !== undefined && findLookAlikes(page, routes).length > 0
}

test('spellings of a path with a demand are refused on a route without this demand', () => {
  expect(refuses({ acr: ['mfa'] }, 'browser')).toBe(true)
  expect(refuses({ acr: ['mfa'] }, undefined)).toBe(true)
  expect(refuses({ maxAgeSeconds: 60 }, { maxAgeSeconds: 600 })).toBe(true)
  expect(refuses({ acr: ['mfa'] }, { acr: ['mfa'] })).toBe(false)
  expect(refuses(undefined, 'browser')).toBe(true)
  expect(refuses('browser', undefined)).toBe(false)
  expect(refuses('browser', 'browser')).toBe(false)
  expect(refuses(undefined, undefined)).toBe(false)
})
