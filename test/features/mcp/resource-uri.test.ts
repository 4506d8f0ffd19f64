/** Properties of the normal form of resources, and of the entries that decide about them. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createResourceTable } from '../../../src/features/mcp/resource-table.ts'
import { isNormalTemplate, isNormalUri } from '../../../src/features/mcp/resource-uri.ts'
import { startWorkerd } from '../../origin/workerd.ts'
import { NORMAL, OTHERS } from './uris.ts'

describe('the normal form of URIs [S80]', () => {
  test.each(NORMAL)('has %s', (uri) => {
    expect(isNormalUri(uri)).toBe(true)
  })

  test.each(OTHERS)('has no URI with %s', (_, uri) => {
    expect(isNormalUri(uri)).toBe(false)
  })

  test('is the same on workerd', async () => {
    const worker = await startWorkerd({
      entry: join(import.meta.dirname, 'uri-worker.ts'),
      vars: {},
    })
    try {
      const uris = [...NORMAL, ...OTHERS.map(([, uri]) => uri)]
      const response = await fetch(`http://127.0.0.1:${worker.port}/`, {
        method: 'POST',
        body: JSON.stringify(uris),
      })
      expect(await response.json()).toEqual(uris.filter(isNormalUri))
    } finally {
      await worker.stop()
    }
  })

  test('has templates with expressions, and no others', () => {
    for (const template of ['file:///docs/{name}', 'note://{id}', 'db://t{?a,b}', 'x:{+path}/a'])
      expect([template, isNormalTemplate(template)]).toEqual([template, true])
    for (const template of ['file:///%64ocs/{name}', 'file:///docs/{', '{+uri}', 'file:///../{a}'])
      expect([template, isNormalTemplate(template)]).toEqual([template, false])
  })

  const piece = fc.constantFrom(
    ...[
      'private',
      'docs',
      'a',
      '.',
      '..',
      '',
      '%70rivate',
      'Private',
      '%2e',
      '%2F',
      '%5c',
      '%25',
      '%20',
    ],
    ...[
      ' ',
      '\\',
      '?',
      '#',
      ';',
      ',',
      '%2C',
      '%C3%A4',
      'ä',
      '\t',
      '%00',
      '%',
      'localhost',
      '@',
      ':',
    ],
  )
  const uris = fc
    .tuple(
      fc.constantFrom('file:///', 'file:', 'file:/', 'FILE:///', 'file://localhost/', 'file:////'),
      fc.array(fc.tuple(piece, fc.constantFrom('/', '')), { maxLength: 6 }),
    )
    .map(([begin, parts]) => begin + parts.flat().join(''))

  test('has one spelling of a file in letters, and a URL parser keeps it', () => {
    fc.assert(
      fc.property(uris, (uri) => {
        if (!isNormalUri(uri)) return
        const path = fileURLToPath(uri)
        expect(new URL(uri).href).toBe(uri)
        // Without characters that may or may not be escaped, the path has no other URI.
        if (/^[\w/.-]*$/.test(path)) expect(uri.replace(/[?#].*/, '')).toBe(`file://${path}`)
        expect(path).not.toMatch(/\/\.{1,2}(\/|$)|\/\/|\\|\0/)
      }),
      { numRuns: 3_000 },
    )
  })

  test('no URI that a server resolves to a protected file is decided by a shorter entry', () => {
    const open = { permission: 'open:read' }
    const closed = { permission: 'closed:read' }
    const table = createResourceTable({
      '*': open,
      'file:///private/*': closed,
      'file:///docs/a': closed,
      'file:///a,private/*': closed,
    })
    fc.assert(
      fc.property(uris, (uri) => {
        const found = table.entriesOf('resource', uri)
        if (found.length === 0) return
        const path = fileURLToPath(uri).toLowerCase().replace(/\/$/, '')
        const isProtected = /^\/(a,)?private(\/|$)|^\/docs\/a$/.test(path)
        if (isProtected) expect(found).toEqual([closed])
      }),
      { numRuns: 5_000 },
    )
  })
})

describe('the entry that decides about a resource', () => {
  const entry = (permission: string) => ({ permission })
  const decided = (table: Parameters<typeof createResourceTable>[0], uri: string) =>
    createResourceTable(table)
      .entriesOf('resource', uri)
      .map(({ permission }) => permission)

  test('is the longest, also if the policy lists a query', () => {
    const table = {
      '*': entry('others'),
      'db://users': entry('users'),
      'db://users?fields=name': entry('names'),
      'db://users?public*': entry('public'),
      'db://users/*': entry('user'),
    }
    expect(decided(table, 'db://users/')).toEqual(['user', 'users'])
    for (const [uri, permission] of [
      ['db://users', 'users'],
      ['db://users?x', 'users'],
      ['db://USERS#x', 'users'],
      ['db://users?fields=name', 'names'],
      ['db://users?fields=name#x', 'names'],
      ['db://users?public=1', 'public'],
      ['db://users?PUBLIC=1', 'public'],
      ['db://users/1', 'user'],
      ['db://orders', 'others'],
    ] as const)
      expect([uri, decided(table, uri)]).toEqual([uri, [permission]])
  })

  test('is each of two that differ only in what servers may read as equal', () => {
    const table = { '*': entry('others'), 'db://A': entry('one'), 'db://a': entry('two') }
    expect(decided(table, 'db://a')).toEqual(['two'])
    expect(decided(table, 'db://A')).toEqual(['one'])
    expect(decided(table, 'db://a?x')).toEqual(['one', 'two'])
  })

  test('is none for a URI that no entry begins, whatever it is equal to', () => {
    expect(decided({ 'db://users': entry('users') }, 'db://USERS')).toEqual([])
    expect(decided({ 'db://users': entry('users') }, 'db://users?x')).toEqual([])
    expect(decided({}, 'db://users')).toEqual([])
  })

  test('permits every form if the table has no entry but *', () => {
    expect(decided({ '*': entry('all') }, 'FILE:///a b')).toEqual(['all'])
  })
})
