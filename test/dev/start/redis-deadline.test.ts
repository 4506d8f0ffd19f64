import { expect, test } from 'vitest'
import { configOf, gatewayVars } from '../../../dev/start/gateway-vars.ts'
import { readSettings } from '../../../dev/start/settings.ts'

const PUBLIC_URL = 'http://127.0.0.1:8787'
const devVars = {
  PUBLIC_URL,
  SIGNING_KEYS: undefined,
  UPSTASH_REDIS_REST_TOKEN: 'rest-token',
  PORTCULLIS_CLIENT_ID: '7f3c2b1a-9d8e-4f6a-8b5c-1d2e3f4a5b6c',
  PORTCULLIS_CLIENT_SECRET: 'pcs_secret-of-this-checkout',
}
const elsewhere = { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1', UPSTASH_REDIS_REST_TOKEN: 't' }

test.each([
  ['one second for the local REST server', {}, 1_000],
  ['the default for another server', elsewhere, undefined],
  ['the configured one', { REDIS_TIMEOUT_MS: '300' }, 300],
])('the Redis deadline of npm start is %s', (_, env, expected) => {
  const settings = readSettings([], env, '/')
  if (settings === 'help')
    throw new Error('npm start printed its help text instead of a configuration')
  const redisRest = { url: 'http://127.0.0.1:1', token: 't' }
  const vars = gatewayVars(settings, devVars as never, PUBLIC_URL, redisRest)
  expect(configOf(vars).redis.timeoutMs).toBe(expected)
})
