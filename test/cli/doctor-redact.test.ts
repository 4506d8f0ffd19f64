/** Doctor masks secrets, and only those. */
import { expect, test } from 'vitest'
import { createRedactor } from '../../cli/doctor/redact.ts'

test('an issuer is shown where it is also the API of the sign-in', () => {
  const issuer = 'https://github.example.com'
  const redact = createRedactor({
    ISSUER_CLIENTS: JSON.stringify([
      { issuer, id: 'gateway', secret: 'a-long-secret', signIn: { name: 'x', apiUrl: issuer } },
    ]),
  })
  expect(redact(`sign-in at ${issuer} with a-long-secret`)).toBe(`sign-in at ${issuer} with ***`)
})
