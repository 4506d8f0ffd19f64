import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Running, startWorkerd } from '../../origin/workerd.ts'
import { ATTACKS } from './attacks.ts'
import { HARMLESS } from './harmless-texts.ts'

let worker: Running

beforeAll(async () => {
  worker = await startWorkerd({ entry: join(import.meta.dirname, 'worker.ts'), vars: {} })
})
afterAll(() => worker?.stop())

/** Sends a body. Returns the status, and the body of an admitted request. */
async function send(path: string, body: string, type = 'application/json') {
  const response = await fetch(`http://127.0.0.1:${worker.port}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': type },
    body,
  })
  const text = await response.text()
  return response.ok ? text : response.status
}

const call = (name: string, values: object) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: values },
  })

test('workerd decides on calls as Node does [S63]', async () => {
  const search = ` ${call('search_books', { text: '白鯨 🐋' })}\n`
  expect(await send('/mcp', search)).toBe(search)
  expect(await send('/mcp', call('remove_book', { isbn: '9780000000000' }))).toBe(403)
  expect(await send('/mcp', call('run_shell', {}))).toBe(403)
  const added = (n: string) => call('add', { n: 0 }).replace('"n":0', `"n":${n}`)
  expect(await send('/mcp', added('9007199254740992'))).toBe(added('9007199254740992'))
  expect(await send('/mcp', added('9007199254740993'))).toBe(422)
  expect(await send('/mcp', call('search_books', { text: '' }))).toBe(422)
  expect(await send('/mcp', '{"jsonrpc":"2.0","id":null,"method":"ping"}')).toBe(400)
  expect(await send('/mcp', search, 'text/plain')).toBe(415)
})

test('workerd decides on forms, queries and texts as Node does [S63]', async () => {
  const form = 'application/x-www-form-urlencoded'
  expect(await send('/form?a=%F0%9F%90%8B', 'b=c%0D%0A', form)).toBe('b=c%0D%0A')
  expect(await send('/form', '"\\ud83d\\udc0b"')).toBe('"\\ud83d\\udc0b"')
  expect(await send('/form?a=%c0%af', '{}')).toBe(400)
  expect(await send('/form?a=1', 'a=2', form)).toBe(400)
  expect(await send('/form', '"\\ud83d"')).toBe(400)
  expect(await send('/form', '{"__proto__":1}')).toBe(400)
  expect(await send('/form', 'bell \u0007', 'text/plain')).toBe(400)
})

test('workerd matches signatures as Node does [S63]', async () => {
  for (const texts of Object.values(ATTACKS)) {
    const statuses = new Set<unknown>()
    // Every ninth text, because there are many.
    for (const text of texts.filter((_, index) => index % 9 === 0))
      statuses.add(await send('/enforced', JSON.stringify({ text })))
    expect([...statuses]).toEqual([403])
  }
  for (const text of [`x;${' '.repeat(1_000)}whoami`, `x"${';'.repeat(1_000)}alert(1)//`])
    expect(await send('/enforced', JSON.stringify({ text }))).toBe(403)
  for (const text of HARMLESS.filter((_, index) => index % 90 === 0))
    expect([text, await send('/enforced', JSON.stringify({ text }))]).toEqual([text, 'reached'])
})

test('workerd inspects multipart bodies as Node does [S62, S63]', async () => {
  const type = 'multipart/form-data; boundary=b0'
  const part = (name: string, value: string) =>
    `--b0\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  const harmless = `${part('a', '白鯨 🐋')}${part('b', 'x'.repeat(50_000))}--b0--\r\n`
  expect(await send('/enforced', harmless, type)).toBe('reached')
  const attack = `${part('a', 'x'.repeat(50_000))}${part('b', "x' or 1=1 -- ")}--b0--\r\n`
  expect(await send('/enforced', attack, type)).toBe(403)
  expect(await send('/enforced', harmless.replaceAll('\r\n', '\n'), type)).toBe(400)
  expect(await send('/enforced', `${harmless}x`, type)).toBe(400)
  expect(await send('/form', harmless, type)).toBe(415)
})
