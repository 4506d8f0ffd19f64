import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readConnection } from '../../cli/connection.ts'

const SAVED = { PORTCULLIS_CLIENT_ID: 'saved', PORTCULLIS_CLIENT_SECRET: 'saved secret' }
const FROM_ENVIRONMENT = {
  PORTCULLIS_CLIENT_ID: 'environment',
  PORTCULLIS_CLIENT_SECRET: 'environment secret',
}

describe('the connection of a command', () => {
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
      // As editors of Windows write it: with a byte order mark, and other ends of lines.
      const lines = Object.entries(SAVED).map(([key, value]) => `${key}='${value}'\r\n`)
      await writeFile(join(path, '.dev.vars'), `\ufeff${lines.join('')}`)
    }
  })

  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('uses the saved client of npm start and the default URL in a checkout and its folders', () => {
    const expected = {
      url: 'http://127.0.0.1:8787',
      clientId: 'saved',
      clientSecret: 'saved secret',
    }
    expect(readConnection({}, {}, checkout)).toEqual(expected)
    expect(readConnection({}, {}, join(checkout, 'src'))).toEqual(expected)
  })

  test('uses the saved client in a project that depends on the package', async () => {
    const project = join(folder, 'project')
    await mkdir(project)
    const manifest = { name: 'my-gateway', devDependencies: { portcullis: '^0.1.0' } }
    await writeFile(join(project, 'package.json'), JSON.stringify(manifest))
    await cp(join(checkout, '.dev.vars'), join(project, '.dev.vars'))
    expect(readConnection({}, {}, project)).toMatchObject({ clientId: 'saved' })
  })

  test('uses PORT for a gateway on this machine, unless PORTCULLIS_URL names one', () => {
    const urlWith = (env: NodeJS.ProcessEnv) => readConnection({}, env, checkout).url
    expect(urlWith({ PORT: '8788' })).toBe('http://127.0.0.1:8788')
    expect(urlWith({ PORT: '8788', PORTCULLIS_URL: 'http://127.0.0.1:9' })).toBe(
      'http://127.0.0.1:9',
    )
    for (const PORT of ['', '0', '65536', 'http', '1e3'])
      expect(urlWith({ PORT }), PORT).toBe('http://127.0.0.1:8787')
  })

  test('prefers the environment to .dev.vars, and options to the environment', () => {
    const env = { ...FROM_ENVIRONMENT, PORTCULLIS_URL: 'https://api.example/' }
    expect(readConnection({}, env, checkout)).toEqual({
      url: 'https://api.example',
      clientId: 'environment',
      clientSecret: 'environment secret',
    })
    const options = { url: 'http://localhost:1', clientId: 'option' }
    expect(readConnection(options, env, checkout)).toEqual({
      url: 'http://localhost:1',
      clientId: 'option',
      clientSecret: 'environment secret',
    })
  })

  test('sends the saved secret to no other machine, and with no other client id', () => {
    const url = 'https://api.example'
    expect(() => readConnection({ url }, {}, checkout)).toThrow('PORTCULLIS_CLIENT_ID is not set')
    const options = { clientId: 'option' }
    expect(() => readConnection(options, {}, checkout)).toThrow(
      'PORTCULLIS_CLIENT_SECRET is not set',
    )
  })

  test('ignores the .dev.vars of another package', () => {
    for (const path of [elsewhere, join(elsewhere, 'src'), folder])
      expect(() => readConnection({}, {}, path)).toThrow('PORTCULLIS_CLIENT_ID is not set')
  })

  test.each(['http://127.0.0.1.example', 'http://localhost.example', 'http://10.0.0.1'])(
    'refuses to send a secret without TLS to %s',
    (url) => {
      expect(() => readConnection({ url }, FROM_ENVIRONMENT, checkout)).toThrow('must be https')
    },
  )

  test.each(['http://127.0.0.2:1', 'http://[::1]:1', 'http://localhost:1'])(
    'permits http for this machine: %s',
    (url) => {
      expect(readConnection({ url }, {}, checkout)).toMatchObject({ url, clientId: 'saved' })
    },
  )
})
