/** Which audit database the environment names, on Node. */
import { expect, it } from 'vitest'
import { nodeEnvironment } from '../../src/validators/node-environment.ts'
import { good, mistakes } from './environment.ts'

function mistakesOf(AUDIT_DATABASE: string): readonly string[] {
  const env = { ...good, AUDIT_DATABASE }
  return mistakes(env, nodeEnvironment(env))
}

it.each([
  'sqlite:/var/lib/portcullis/audit.db',
  'postgres://user:password@db.example/audit',
  'postgresql://user:p%40ss@10.0.4.1:6432/audit?sslmode=verify-full',
  'postgres://user@[::1]/audit?sslmode=disable',
  'postgres:///audit?host=/var/run/postgresql',
])('the audit database can be %s', (address) => {
  expect(mistakesOf(address)).toEqual([])
})

it.each([
  '/var/lib/audit.db',
  'sqlite:',
  'mysql://user:hunter2@db.example/audit',
  'postgres://user:hunter2@db.example',
  'postgres://user:hunter2@db.example/',
  'postgres:///audit',
  'postgres://user:hunter2@db.example:port/audit',
])('the audit database cannot be %s, and the mistake does not repeat it', (address) => {
  const found = mistakesOf(address)
  expect(found).toHaveLength(1)
  expect(found[0]).toMatch(/^AUDIT_DATABASE: must be sqlite: and the path of a file, /)
  expect(found[0]).not.toContain('hunter2')
})

it.each(['require', 'prefer', 'verify-ca', ''])('sslmode cannot be "%s"', (mode) => {
  expect(mistakesOf(`postgres://u:p@db.example/audit?sslmode=${mode}`)).toEqual([
    'AUDIT_DATABASE: sslmode must be verify-full or disable',
  ])
})
