import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { decodeJwt } from 'jose'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { line, prepareDevVars, setPublicUrl } from '../../../dev/dev-vars.ts'
import { signAccessToken } from '../../../dev/start/access-token.ts'

describe('.dev.vars', () => {
  let folder: string
  let file: string

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-dev-vars-'))
    file = join(folder, '.dev.vars')
  })

  afterEach(() => rm(folder, { recursive: true, force: true }))

  it('is created once with random secrets, readable only by its owner', async () => {
    const [one, other] = await Promise.all([
      prepareDevVars(file, 'http://127.0.0.1:1'),
      prepareDevVars(file, 'http://127.0.0.1:2'),
    ])
    expect(one).toEqual(other)
    expect(await prepareDevVars(file, 'http://127.0.0.1:3')).toEqual(one)
    expect(((await stat(file)).mode & 0o777).toString(8)).toBe('600')
    const elsewhere = await prepareDevVars(join(folder, 'other'), 'http://127.0.0.1:1')
    expect(elsewhere.SIGNING_KEYS).not.toBe(one.SIGNING_KEYS)
    expect(elsewhere.UPSTASH_REDIS_REST_TOKEN).not.toBe(one.UPSTASH_REDIS_REST_TOKEN)
    expect(elsewhere.PORTCULLIS_CLIENT_ID).not.toBe(one.PORTCULLIS_CLIENT_ID)
    expect(elsewhere.PORTCULLIS_CLIENT_SECRET).not.toBe(one.PORTCULLIS_CLIENT_SECRET)
  })

  it('a token for it has the issuer in the spelling of the gateway', async () => {
    const { SIGNING_KEYS } = await prepareDevVars(file, 'http://127.0.0.1:1')
    const token = await signAccessToken(
      { subject: 'alice', client: 'app', roles: [], ttlSeconds: 60 },
      { PUBLIC_URL: 'HTTPS://gateway.test/', SIGNING_KEYS },
    )
    expect(decodeJwt(token)).toMatchObject({
      iss: 'https://gateway.test',
      aud: 'https://gateway.test',
    })
  })

  it('keeps the lines of the user, and adds only what is missing', async () => {
    await writeFile(file, '# mine\nISSUERS=[]\nPUBLIC_URL=https://api.example')
    const vars = await prepareDevVars(file, 'http://127.0.0.1:1')
    expect(vars).toMatchObject({ ISSUERS: '[]', PUBLIC_URL: 'https://api.example' })
    expect(await readFile(file, 'utf8')).toMatch(/^# mine\nISSUERS=\[\]\nPUBLIC_URL=https/)
    setPublicUrl(file, 'http://127.0.0.1:2')
    expect(await prepareDevVars(file, 'http://127.0.0.1:1')).toEqual({
      ...vars,
      PUBLIC_URL: 'http://127.0.0.1:2',
    })
  })

  it("gets an operator's client if an earlier version created it without one", async () => {
    await writeFile(file, `SIGNING_KEYS='{}'\nUPSTASH_REDIS_REST_TOKEN=t\nPUBLIC_URL=http://a\n`)
    const vars = await prepareDevVars(file, 'http://127.0.0.1:1')
    expect(vars.PORTCULLIS_CLIENT_ID).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/)
    expect(vars.PORTCULLIS_CLIENT_SECRET).toMatch(/^pcs_[\w-]{43}$/)
    expect(vars.SIGNING_KEYS).toBe('{}')
    expect(await prepareDevVars(file, 'http://127.0.0.1:1')).toEqual(vars)
  })

  it.each(['plain', 'a b # c', '{"a":"$HOME"}', "it's", 'two\nlines', '', '$& $1', '"'])(
    'returns %j unchanged',
    (value) => {
      expect(parseEnv(`${line('NAME', value)}\n`)).toEqual({ NAME: value })
    },
  )

  it('refuses a value that cannot be quoted', () => {
    expect(() => line('NAME', `'\``)).toThrow('NAME contains characters')
  })
})
