import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readConnection } from '../../cli/connection.ts'

const KEPT = { PORTCULLIS_CLIENT_ID: 'kept', PORTCULLIS_CLIENT_SECRET: 'kept secret' }
const GIVEN = { PORTCULLIS_CLIENT_ID: 'given', PORTCULLIS_CLIENT_SECRET: 'given secret' }

describe('which gateway, and as whom:', () => {
  let folder: string
  let checkout: string
  let elsewhere: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-connection-'))
    checkout = join(folder, 'checkout')
    elsewhere = join(folder, 'elsewhere')
    for (const [path, name] of [
      [checkout, 'portcullis'],
      [elsewhere, 'shop'],
    ] as const) {
      await mkdir(join(path, 'src'), { recursive: true })
      await writeFile(join(path, 'package.json'), JSON.stringify({ name }))
      const lines = Object.entries(KEPT).map(([key, value]) => `${key}='${value}'\n`)
      await writeFile(join(path, '.dev.vars'), lines.join(''))
    }
  })

  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('in a checkout and below it, what npm start keeps, at the usual place', () => {
    const expected = {
      url: 'http://127.0.0.1:8787',
      clientId: 'kept',
      clientSecret: 'kept secret',
    }
    expect(readConnection({}, {}, checkout)).toEqual(expected)
    expect(readConnection({}, {}, join(checkout, 'src'))).toEqual(expected)
  })

  test('the environment wins over that, and options over the environment', () => {
    const env = { ...GIVEN, PORTCULLIS_URL: 'https://api.example/' }
    expect(readConnection({}, env, checkout)).toEqual({
      url: 'https://api.example',
      clientId: 'given',
      clientSecret: 'given secret',
    })
    const options = { url: 'http://localhost:1', clientId: 'asked' }
    expect(readConnection(options, env, checkout)).toEqual({
      url: 'http://localhost:1',
      clientId: 'asked',
      clientSecret: 'given secret',
    })
  })

  test('the kept secret goes to no other machine, and with no other client', () => {
    const url = 'https://api.example'
    expect(() => readConnection({ url }, {}, checkout)).toThrow('PORTCULLIS_CLIENT_ID is not set')
    const asked = { clientId: 'asked' }
    expect(() => readConnection(asked, {}, checkout)).toThrow('PORTCULLIS_CLIENT_SECRET is not set')
  })

  test('a .dev.vars of something else is not read', () => {
    for (const path of [elsewhere, join(elsewhere, 'src'), folder])
      expect(() => readConnection({}, {}, path)).toThrow('PORTCULLIS_CLIENT_ID is not set')
  })

  test.each(['http://127.0.0.1.example', 'http://localhost.example', 'http://10.0.0.1'])(
    'no secret goes in the clear to %s',
    (url) => {
      expect(() => readConnection({ url }, GIVEN, checkout)).toThrow('must be https')
    },
  )

  test.each(['http://127.0.0.2:1', 'http://[::1]:1', 'http://localhost:1'])(
    'but to this machine: %s',
    (url) => {
      expect(readConnection({ url }, {}, checkout)).toMatchObject({ url, clientId: 'kept' })
    },
  )
})
