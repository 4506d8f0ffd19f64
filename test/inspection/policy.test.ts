import { expect, test } from 'vitest'
import * as z from 'zod'
import { signatures } from '../../src/features/signatures/index.ts'
import {
  definePolicy,
  Misconfigured,
  type RouteDefinition,
  type SignaturesDefinition,
} from '../../src/index.ts'

const methods = { 'tools/call': true, ping: true }
const tools = { search: true }
const route = { method: 'POST', path: '/mcp', permission: 'mcp:use' }

function mistakesOf(bad: object): readonly string[] {
  try {
    definePolicy({
      roles: {},
      limits: {},
      routes: [{ ...route, ...bad } as RouteDefinition<never>],
    })
    return []
  } catch (error) {
    if (!(error instanceof Misconfigured)) throw error
    return error.mistakes
  }
}

test.each([
  ['inspection with its defaults', { inspect: {} }],
  ['inspection in observe mode', { inspect: { mode: 'observe', signatures: signatures() } }],
  ['no signatures', { inspect: { signatures: false } }],
  [
    'a selection of signatures',
    {
      inspect: {
        signatures: signatures({ mode: 'enforce', threshold: 8, categories: ['ssrf_target'] }),
      },
    },
  ],
  ['methods and tools', { inspect: { jsonRpc: { methods, tools, maxBatch: 50 } } }],
  ['methods without tools', { inspect: { jsonRpc: { methods: { ping: true } } } }],
  [
    'anonymous callers of methods without a permission',
    { permission: undefined, anonymous: true, inspect: { jsonRpc: { methods, tools } } },
  ],
])('a policy may have %s [R31]', (_, good) => {
  expect(mistakesOf(good)).toEqual([])
})

const dropping = { arguments: z.strictObject({ where: z.object({}) }) }
test.each([
  ['an unknown option', { signatures: true }, /signatures/],
  ['an unknown mode', { mode: 'off' }, /mode/],
  [
    'settings of signatures without the import',
    { signatures: { mode: 'enforce' } },
    /signatures: must be .* import \{ signatures \} from 'portcullis\/signatures'/,
  ],
  ['a depth of zero', { maxDepth: 0 }, /maxDepth/],
  ['a depth that is too large', { maxDepth: 101 }, /maxDepth/],
  ['a batch size that is too large', { jsonRpc: { methods, tools, maxBatch: 51 } }, /maxBatch/],
  [
    'tools without a method that calls them',
    { jsonRpc: { methods: { ping: true }, tools } },
    /or neither/,
  ],
  ['a method that calls tools, without tools', { jsonRpc: { methods } }, /or neither/],
  ['a method that is false', { jsonRpc: { methods: { ping: false } } }, /ping/],
  [
    'a permission without a verb',
    { jsonRpc: { methods: { ping: { permission: 'a' } } } },
    /permission such as/,
  ],
  ['an invalid schema', { jsonRpc: { methods, tools: { a: { arguments: {} } } } }, /a zod schema/],
  [
    'a schema that drops unknown keys',
    { jsonRpc: { methods, tools: { a: dropping } } },
    /tools\.a.*z\.strictObject/,
  ],
])('a policy with %s in its inspection is refused [R31]', (_, inspect, message) => {
  expect(mistakesOf({ inspect }).join('\n')).toMatch(message)
})

test.each([
  ['a threshold of 0', { threshold: 0 }, /^inspect\.signatures\.threshold: /],
  ['an unknown category', { categories: ['ldap'] }, /^inspect\.signatures\.categories\[0\]: /],
  ['no category', { categories: [] }, /^inspect\.signatures\.categories: /],
  ['an unknown mode', { mode: true }, /^inspect\.signatures\.mode: /],
  ['an unknown setting', { limit: 5 }, /^inspect\.signatures: .*limit/],
])('signatures() refuses %s [R31]', (_, settings, message) => {
  const create = () => signatures(settings as unknown as SignaturesDefinition)
  expect(create).toThrow(
    expect.objectContaining({ mistakes: [expect.stringMatching(message)] }) as Misconfigured,
  )
})

test('JSON-RPC requires POST, and callers who can have the required permissions [R31]', () => {
  const jsonRpc = { methods: { ping: { permission: 'a:b' } } }
  expect(mistakesOf({ method: 'PUT', inspect: { jsonRpc } }).join()).toContain('requires POST')
  const anonymous = { permission: undefined, anonymous: true, inspect: { jsonRpc } }
  expect(mistakesOf(anonymous).join()).toContain('anonymous callers have none')
})
