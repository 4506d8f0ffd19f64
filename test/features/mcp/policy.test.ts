import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { Misconfigured } from '../../../src/errors.ts'
import { type McpOptions, mcp } from '../../../src/features/mcp/index.ts'
import { relations } from '../../../src/features/relations/index.ts'
import { composeServices } from '../../../src/gateway/compose-services.ts'
import { WORKERS } from '../../../src/gateway/runtime.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { createKey } from '../../harness/issuer.ts'

const MODEL = {
  schema_version: '1.1',
  type_definitions: [
    { type: 'user' },
    {
      type: 'note',
      relations: { reader: { this: {} } },
      metadata: { relations: { reader: { directly_related_user_types: [{ type: 'user' }] } } },
    },
  ],
}

const policyOf = (options: object, others: object = {}) =>
  definePolicy({
    roles: { user: ['mcp:use'] },
    limits: { standard: '10/min' },
    routes: [...mcp({ path: '/mcp', permission: 'mcp:use', ...options } as McpOptions<'standard'>)],
    ...others,
  })

function mistakesOf(options: object, others?: object): readonly string[] {
  try {
    policyOf(options, others)
    return []
  } catch (error) {
    if (error instanceof Misconfigured) return error.mistakes
    throw error
  }
}

const literal = (text: string) => text.replace(/[*?./]/g, '\\$&')
const args = z.strictObject({ id: z.string() })
const reader = { object: 'note:{arguments.id}', relation: 'reader' }
const withModel = { relations: relations({ model: MODEL }) }

describe('mistakes in the options of an MCP server', () => {
  test.each<[string, object, RegExp, object?]>([
    ['a path with parameters', { path: '/:name' }, /mcp\.path: must be a path without parameters/],
    ['no path', { path: undefined }, /mcp\.path/],
    [
      'a bad permission',
      { tools: { a: { permission: 'x' } } },
      /tools\.a\.permission: must be a permission/,
    ],
    [
      'a schema that drops keys',
      { tools: { a: { arguments: z.object({}) } } },
      /tools\.a\.arguments: must be 'any', or a schema/,
    ],
    ['an unknown field', { tools: { a: { scope: 'x' } } }, /tools\.a.*scope/],
    [
      'an unknown limit',
      { tools: { a: { limits: ['fast'] } } },
      /tools\.a\.limits: unknown limit fast/,
    ],
    [
      'a hash of another kind',
      { tools: { a: { definition: 'md5-1' } } },
      /definition: must be sha256-/,
    ],
    [
      'a hash for all others',
      { tools: { '*': { definition: `sha256-${'a'.repeat(43)}` } } },
      /need a tool with a name/,
    ],
    ...(
      [
        ['file://localhost/docs/*', 'did you mean "file:///docs/*"?'],
        ['FILE:///docs/a.txt', 'did you mean "file:///docs/a.txt"?'],
        ['file:///%64ocs/*', 'did you mean "file:///docs/*"?'],
        ['file:///my docs/*', 'did you mean "file:///my%20docs/*"?'],
        ['file:///docs//a/*', 'did you mean "file:///docs/a/*"?'],
        ['https://Example.com:443/a', 'did you mean "https://example.com/a"?'],
        ['https://example*', 'write a scheme, a complete host and a path'],
        ['docs/*', 'write a scheme, a complete host and a path'],
        ['file:///a/*/b', 'has a * that is not at its end'],
        ['urn:Example:a', 'is not in the normal form'],
        ['note://{name}', 'is a template, which permits no resource; write "note://*"'],
        ['file:///a/{name}/b*', 'is a template, which permits no resource; write "file:///a/*"'],
        ['{any}', 'is a template, which permits no resource'],
        ['https://{host}/a', 'is a template, which permits no resource'],
      ] as const
    ).map(
      ([pattern, text]) =>
        [
          `the resource ${pattern}`,
          { resources: { [pattern]: true } },
          new RegExp(`${literal(`resources.${pattern}: `)}.*${literal(text)}`),
        ] as [string, object, RegExp],
    ),
    ['a version that is no date', { versions: ['2'] }, /versions.*must be a date/],
    ['a scope with a quote', { scopes: ['a"b'] }, /scopes.*must be a scope/],
    [
      'a relation without relations',
      { tools: { a: { arguments: args, relation: reader } } },
      /requires the field relations/,
    ],
    [
      'a relation without arguments',
      { tools: { a: { relation: reader } } },
      /requires a schema of the arguments/,
      withModel,
    ],
    [
      'an unknown relation',
      { tools: { a: { arguments: args, relation: { ...reader, relation: 'x' } } } },
      /tools\.a\.relation/,
      withModel,
    ],
    [
      'a permission for anonymous callers',
      { permission: undefined, anonymous: true, tools: { a: { permission: 'a:b' } } },
      /anonymous callers have none/,
    ],
  ])('%s', (_, options, message, others) => {
    const mistakes = mistakesOf(options, others)
    expect(mistakes.join('\n')).toMatch(message)
  })

  test('none', () => {
    expect(mistakesOf({ tools: { a: { arguments: args, relation: reader } } }, withModel)).toEqual(
      [],
    )
    expect(mistakesOf({ tools: { '*': { arguments: 'any' } }, resources: { '*': true } })).toEqual(
      [],
    )
  })

  test('no signing keys', async () => {
    const { publicJwk } = await createKey('idp')
    const policy = policyOf({})
    const start = () =>
      composeServices(
        {
          UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:9',
          UPSTASH_REDIS_REST_TOKEN: 'token',
          PUBLIC_URL: 'https://gateway.test',
          ORIGIN_URL: 'http://127.0.0.1:9',
          ISSUERS: JSON.stringify([
            { issuer: 'https://idp.test', audience: 'a', jwks: { keys: [publicJwk] } },
          ]),
        },
        policy,
        WORKERS,
      )
    expect(start).toThrow(/SIGNING_KEYS: is missing; mcp\(\)/)
  })
})
