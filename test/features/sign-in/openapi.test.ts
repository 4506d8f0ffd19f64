/** The description of the calls of signed-in users. */
import { expect, test } from 'vitest'
import { openApiDocument } from '../../../src/features/openapi/document.ts'
import { signInOperations } from '../../../src/features/sign-in/pages/sessions-view.ts'
import { SESSION_COOKIE } from '../../../src/features/sign-in/session.ts'

test('the calls need the session cookie, and describe their sessions', () => {
  const options = { publicUrl: 'https://gateway.example', version: '1' }
  const { paths, components } = openApiDocument(signInOperations(), options)
  expect(Object.entries(paths).map(([path, methods]) => [path, Object.keys(methods)])).toEqual([
    ['/oauth/sessions', ['get']],
    ['/oauth/sessions/{id}', ['delete']],
  ])
  for (const methods of Object.values(paths))
    for (const { security } of Object.values(methods)) expect(security).toEqual([{ session: [] }])
  expect(components.securitySchemes.session).toMatchObject({
    type: 'apiKey',
    in: 'cookie',
    name: SESSION_COOKIE,
  })
  expect(JSON.stringify(paths['/oauth/sessions']?.get?.responses)).toContain('createdAt')
  expect(openApiDocument([], options).components.securitySchemes).not.toHaveProperty('session')
})
