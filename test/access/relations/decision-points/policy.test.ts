import { expect, test } from 'vitest'
import { Misconfigured } from '../../../../src/errors.ts'
import { authzen } from '../../../../src/features/authzen/index.ts'
import { openfga } from '../../../../src/features/openfga/index.ts'
import { relations } from '../../../../src/features/relations/index.ts'
import { definePolicy } from '../../../../src/policy/policy.ts'

const direct = (...types: object[]) => ({ directly_related_user_types: types })
const model = {
  schema_version: '1.1',
  type_definitions: [
    { type: 'user' },
    {
      type: 'doc',
      relations: { viewer: { this: {} } },
      metadata: { relations: { viewer: direct({ type: 'user' }) } },
    },
  ],
}

const AUTHORITIES = { redis: 'redis', openfga: openfga(), authzen: authzen() } as const

const policyOf = (authority: 'redis' | 'openfga' | 'authzen', contextual: boolean) =>
  definePolicy({
    roles: { reader: ['docs:read'] },
    limits: {},
    relations: relations({ model, authority: AUTHORITIES[authority] }),
    routes: [
      {
        method: 'GET',
        path: '/docs/:id',
        permission: 'docs:read',
        relation: {
          object: 'doc:{params.id}',
          relation: 'viewer',
          ...(contextual && {
            contextualTuples: [{ object: 'doc:1', relation: 'viewer', subject: 'user:{subject}' }],
          }),
        },
      },
    ],
  })

test('a policy with queries that its decision point cannot express is refused', () => {
  for (const authority of ['redis', 'openfga', 'authzen'] as const) {
    expect(policyOf(authority, false).relations?.authority).toBe(AUTHORITIES[authority])
    if (authority !== 'authzen') expect(() => policyOf(authority, true)).not.toThrow()
  }
  expect(() => policyOf('authzen', true)).toThrow(Misconfigured)
  expect(() => policyOf('authzen', true)).toThrow('contextualTuples are not supported by AuthZEN')
})
