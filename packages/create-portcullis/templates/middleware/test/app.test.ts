/** Sends requests to the app, which `dev-server.ts` runs with a real Redis. */
import { execFileSync } from 'node:child_process'
import { expect, inject, test } from 'vitest'

/** Signs a token with the development keys of this project. */
function tokenOf(subject: string, role: string): string {
  const args = ['token', '--sub', subject, '--role', role]
  return execFileSync('portcullis', args, { encoding: 'utf8' }).trim()
}

const note = { method: 'POST', body: JSON.stringify({ text: 'Buy milk' }) }
const json = { 'Content-Type': 'application/json' }

test('readers read notes, and only writers write them', async () => {
  const reader = { Authorization: `Bearer ${tokenOf('alice', 'reader')}` }
  const writer = { Authorization: `Bearer ${tokenOf('bob', 'writer')}` }
  const url = `${inject('url')}/notes`
  expect((await fetch(url)).status).toBe(401)
  expect(await (await fetch(url, { headers: reader })).json()).toEqual({ notesOf: 'alice' })
  expect((await fetch(url, { ...note, headers: { ...reader, ...json } })).status).toBe(403)
  expect((await fetch(url, { ...note, headers: { ...writer, ...json } })).status).toBe(201)
})
