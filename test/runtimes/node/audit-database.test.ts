/** Which audit database and which spool the environment names, on Node. */
import { expect, it } from 'vitest'
import { auditPlaces } from '../../../src/runtimes/node/environment/audit-environment.ts'
import { nodeEnvironment } from '../../../src/runtimes/node/environment/node-environment.ts'
import { good, mistakes } from '../../validators/environment.ts'

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

const placesWith = (variables: Record<string, string>) => auditPlaces({ ...good, ...variables })

it('the spool is beside the file of SQLite, unless it is another directory or off', () => {
  const AUDIT_DATABASE = 'sqlite:/var/lib/portcullis/audit.db'
  const beside = { directory: '/var/lib/portcullis/audit.db.spool', maxBytes: 268_435_456 }
  expect(placesWith({ AUDIT_DATABASE }).spool).toEqual(beside)
  const given = { AUDIT_SPOOL: '/spool', AUDIT_SPOOL_MAX_MIB: '2' }
  const place = { directory: '/spool', maxBytes: 2_097_152 }
  expect(placesWith({ AUDIT_DATABASE, ...given }).spool).toEqual(place)
  expect(placesWith({ AUDIT_DATABASE, AUDIT_SPOOL: 'off' }).spool).toBeUndefined()
})

it('without a file of SQLite, there is a spool only if its directory is given', () => {
  const postgres = { AUDIT_DATABASE: 'postgres://user@db.example/audit' }
  for (const store of [postgres, { AUDIT_STREAM: 'redis' }]) {
    expect(placesWith(store).spool).toBeUndefined()
    expect(placesWith({ ...store, AUDIT_SPOOL: '/spool' }).spool?.directory).toBe('/spool')
  }
})

it('a spool without a trail is a mistake, and off is not', () => {
  const mistakesWith = (AUDIT_SPOOL: string) => {
    const env = { ...good, AUDIT_SPOOL }
    return mistakes(env, nodeEnvironment(env))
  }
  expect(mistakesWith('/spool')).toEqual([
    'AUDIT_STREAM: is missing; AUDIT_SPOOL requires it, or AUDIT_DATABASE',
  ])
  expect(mistakesWith('off')).toEqual([])
})

it.each(['0', '-1', '1.5', '10 MB'])('the bound of the spool cannot be %s', (bound) => {
  const env = { ...good, AUDIT_STREAM: 'redis', AUDIT_SPOOL_MAX_MIB: bound }
  expect(mistakes(env, nodeEnvironment(env))).toEqual([
    'AUDIT_SPOOL_MAX_MIB: must be a whole number of MiB, at least 1',
  ])
})
