/** Texts of events with a right hash that are not of the form in which the gateway writes them. */
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { isWholeBlock, stateOf } from '../../cli/chain-hash.ts'
import { GENESIS } from '../../src/audit/chain.ts'
import { verifyPart } from '../../src/features/console/chain-verdict.ts'
import { chainBehind, rowOf } from './earlier-rows.ts'
import { anEvent } from './event.ts'

const digest = (text: string) => createHash('sha256').update(text).digest('base64url')
const SALT = 'S'.repeat(43)
const C = digest('one')
const PUBLIC = '{"reason":"ok"}'
const CALLER = '{"requestId":"x"}'
const whole = (salt: string) => [[PUBLIC, salt, CALLER].join('\t'), digest(`${salt}\n${CALLER}`)]
const erased = (values: string, commitment = C) => [`${PUBLIC}\t\t${values}`, commitment]

/** The text of an event, and what the hash of its block covers after the public part. */
const EVENTS: readonly (readonly [string, readonly string[], boolean])[] = [
  ['an event', whole(SALT), true],
  ['an erased event', erased(`{"commitment":"${C}","erasure":"e"}`), true],
  [
    'a commitment with a tab',
    erased(`{"commitment":"${C}\\t${C}","erasure":"e"}`, `${C}\t${C}`),
    false,
  ],
  ['a commitment with a line', erased(`{"commitment":"${C}\\na","erasure":"e"}`, `${C}\na`), false],
  ['a short commitment', erased('{"commitment":"C","erasure":"e"}', 'C'), false],
  ['an erasure that is a number', erased(`{"commitment":"${C}","erasure":7}`), false],
  ['no erasure', erased(`{"commitment":"${C}"}`), false],
  ['another member', erased(`{"commitment":"${C}","erasure":"e","note":1}`), false],
  ['two commitments', erased(`{"commitment":"${SALT}","commitment":"${C}","erasure":"e"}`), false],
  ['a short salt', whole('AAAA'), false],
  ['a salt with a line', whole(`${SALT.slice(2)}\na`), false],
  ['a line feed in a field', erased(`{"commitment":"${C}",\n"erasure":"e"}`), false],
  ['one field', [PUBLIC, ''], false],
  [
    'four fields',
    [`${whole(SALT)[0]}\t${SALT}`, `${whole(SALT)[1]}\t${digest(`${SALT}\n`)}`],
    false,
  ],
]

describe.each(EVENTS)('the text of an event: %s', (_, [line = '', commitments = ''], isRight) => {
  const covered = commitments === '' ? PUBLIC : `${PUBLIC}\t${commitments}`
  const place = { first_seq: 1, last_seq: 1, previous_hash: GENESIS.hash, lines: [line] }
  const block = { ...place, hash: digest(`${GENESIS.hash}\n1\n${covered}`) }

  test(`${isRight ? 'is accepted' : 'is a finding'} of the command and of the console [S66]`, async () => {
    expect(isWholeBlock(block)).toBe(isRight)
    const { hash } = block
    const part = { rows: [], blocks: [block], checkpoints: [], after: 0, hash: undefined }
    const { result } = await verifyPart({ ...part, head: { seq: 1, hash } })
    expect(result).toBe(isRight ? 'yes' : 'no')
  })
})

describe('a row with a right hash', async () => {
  const { rows } = await chainBehind(GENESIS, [rowOf(anEvent())])
  const [row = {}] = rows
  const CALLER_COLUMNS = new Set(
    [
      'issuer',
      'subject',
      'client',
      'tenant',
      'token_id_hash',
      'api_key',
      'grants',
      'fields',
    ].concat(['request_id', 'trace_id', 'address']),
  )
  const canonical = (columns: object, isMeant: (name: string) => boolean) =>
    JSON.stringify(
      columns,
      Object.entries(columns)
        .flatMap(([name, value]) => (value !== null && isMeant(name) ? [name] : []))
        .sort(),
    )
  function hashed(columns: typeof row) {
    const open = (name: string) =>
      !CALLER_COLUMNS.has(name) &&
      !['hash', 'previous_hash', 'erasure', 'salt', 'change_salt', 'change'].includes(name)
    const text = `${columns.previous_hash}\n${canonical(columns, open)}`
    return { ...columns, hash: digest(text) }
  }
  const salted = (salt: string) => {
    const values = canonical(row, (name) => CALLER_COLUMNS.has(name))
    return hashed({ ...row, salt, commitment: digest(`${salt}\n${values}`) })
  }
  const erasedBy = (commitment: string) => {
    const empty = Object.fromEntries([...CALLER_COLUMNS].map((name) => [name, null]))
    const left = { ...empty, request_id: '', trace_id: '', address: 'erased' }
    return hashed({ ...row, ...left, salt: null, erasure: 'e', commitment })
  }

  test.each([
    ['as written', row, 'whole'],
    ['with another salt of 43 characters', salted(SALT), 'whole'],
    ['with a short salt', salted('AAAA'), 'changed'],
    ['erased', erasedBy(C), 'erased'],
    ['erased, with a short commitment', erasedBy('C'), 'changed'],
    ['of an unknown version', hashed({ ...row, v: 3 }), 'changed'],
    ['of another chain', hashed({ ...row, partition: '1' }), 'changed'],
  ] as const)('%s: is verified as stated [S66]', (_, given, state) => {
    expect(stateOf(given)).toBe(state)
  })
})
