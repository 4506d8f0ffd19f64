import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { environmentFile, gatewayVars } from '../../../dev/start/gateway-vars.ts'
import { clientsWithOperator } from '../../../dev/start/operator-client.ts'
import { readSettings } from '../../../dev/start/settings.ts'

const devVars = {
  SIGNING_KEYS: '{"keys":[]}',
  UPSTASH_REDIS_REST_TOKEN: 'rest-token',
  PUBLIC_URL: 'http://127.0.0.1:8787',
  PORTCULLIS_CLIENT_ID: '7f3c2b1a-9d8e-4f6a-8b5c-1d2e3f4a5b6c',
  PORTCULLIS_CLIENT_SECRET: 'pcs_secret-of-this-checkout',
}
const operator = {
  id: devVars.PORTCULLIS_CLIENT_ID,
  name: 'npm start',
  grants: ['client_credentials'],
  roles: ['operator'],
  secretSha256: createHash('sha256').update(devVars.PORTCULLIS_CLIENT_SECRET).digest('base64url'),
}
const other = { ...operator, id: '00000000-0000-4000-8000-000000000000', name: 'mine' }

describe("the operator's client of a checkout", () => {
  it('is the only client if no other is configured', () => {
    expect(JSON.parse(clientsWithOperator(devVars, undefined))).toEqual([operator])
  })

  it('follows the clients that a user configured', () => {
    const merged = clientsWithOperator(devVars, JSON.stringify([other]))
    expect(JSON.parse(merged)).toEqual([other, operator])
  })

  it('is kept as the user wrote it', () => {
    const own = JSON.stringify([{ ...operator, roles: ['reader'] }])
    expect(clientsWithOperator(devVars, own)).toBe(own)
  })

  it.each(['[{', '{}', '"x"'])('does not parse %s: the schema refuses it later', (text) => {
    expect(clientsWithOperator(devVars, text)).toBe(text)
  })

  it('is stored by its hash in the gateway, and the secret is not in its environment [S40]', () => {
    const { SIGNING_KEYS, ...keyless } = devVars
    const settings = readSettings([], { CLIENTS: JSON.stringify([other]) }, '/')
    if (settings === 'help')
      throw new Error('npm start printed its help text instead of a configuration')
    const redis = { url: 'http://127.0.0.1:1', token: 't' }
    const vars = gatewayVars(settings, keyless as typeof devVars, keyless.PUBLIC_URL, redis)
    expect(JSON.parse(vars.CLIENTS ?? '')).toEqual([other, operator])
    const file = environmentFile(vars)
    expect(file).toContain(operator.secretSha256)
    expect(file).not.toContain(devVars.PORTCULLIS_CLIENT_SECRET)
  })
})
