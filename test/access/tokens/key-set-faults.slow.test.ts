import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import type { KeySetIncident } from '../../../src/access/tokens/remote-key-set.ts'
import {
  type Behavior,
  hanging,
  keySetOn,
  publishing,
  respondingWith,
  startProvider,
} from './provider.ts'
import { createSigner } from './signer.ts'

const signer = await createSigner('ES256', 'a')
const attacker = await createSigner('ES256', 'a')
const good = publishing([signer.publicJwk])
const json = (value: unknown) => respondingWith(JSON.stringify(value))
const key = signer.publicJwk
const KILOBYTE = 'x'.repeat(1_024)

const closers: (() => Promise<void>)[] = []
afterAll(() => Promise.all(closers.map((close) => close())))

async function provide(behavior: Behavior) {
  const provider = await startProvider(behavior)
  closers.push(() => provider.close())
  return provider
}

const endless: Behavior = (response) => {
  response.writeHead(200)
  let sent = 0
  const more = () => {
    while (sent < 50 * 1024 && !response.destroyed) {
      sent++
      if (!response.write(KILOBYTE)) return response.once('drain', more)
    }
    return response.end()
  }
  more()
}

const dripping: Behavior = (response) => {
  response.writeHead(200)
  const timer = setInterval(() => response.write('\n'), 20)
  response.once('close', () => clearInterval(timer))
}

const FAULTS: Record<string, readonly [Behavior, string]> = {
  'an error page': [respondingWith('<h1>Oops</h1>', 500), 'refused'],
  'an error status with a valid set': [
    respondingWith(JSON.stringify({ keys: [key] }), 503),
    'refused',
  ],
  'another success status': [respondingWith(JSON.stringify({ keys: [key] }), 203), 'refused'],
  'no content': [(response) => response.writeHead(204).end(), 'refused'],
  'a login page': [respondingWith('<!doctype html><title>Sign in</title>'), 'malformed'],
  nothing: [respondingWith(''), 'malformed'],
  'a JSON scalar': [json(null), 'malformed'],
  'an array': [json([key]), 'malformed'],
  'an object without keys': [json({ issuer: 'x' }), 'malformed'],
  'keys that are not an array': [json({ keys: key }), 'malformed'],
  'an empty set': [json({ keys: [] }), 'malformed'],
  'only unusable keys': [
    json({ keys: [{ ...key, use: 'enc' }, { kty: 'oct', k: 'AAAA' }, 1] }),
    'malformed',
  ],
  'a point off its curve': [json({ keys: [{ ...key, y: key.x }] }), 'malformed'],
  'two keys with one kid': [json({ keys: [key, attacker.publicJwk] }), 'malformed'],
  'a duplicate member': [
    respondingWith(`{"keys":[],"keys":[${JSON.stringify(key)}]}`),
    'malformed',
  ],
  'two byte order marks': [
    respondingWith(`\ufeff\ufeff${JSON.stringify({ keys: [key] })}`),
    'malformed',
  ],
  'invalid UTF-8': [respondingWith(new Uint8Array([0x7b, 0xff, 0x7d])), 'malformed'],
  'deep nesting': [respondingWith('['.repeat(100_000)), 'malformed'],
  'too many keys': [
    json({ keys: Array.from({ length: 129 }, (_, n) => ({ ...key, kid: `${n}` })) }),
    'malformed',
  ],
  '50 MB': [endless, 'malformed'],
  'a set that is too long': [
    respondingWith(JSON.stringify({ keys: [key], padding: KILOBYTE.repeat(256) })),
    'malformed',
  ],
  'a compressed bomb': [
    respondingWith(gzipSync(JSON.stringify({ keys: [key], x: KILOBYTE.repeat(20_000) })), 200, {
      'content-encoding': 'gzip',
    }),
    'malformed',
  ],
  silence: [hanging, 'timeout'],
  'silence after the headers': [(response) => response.writeHead(200).flushHeaders(), 'timeout'],
  'a slow drip': [dripping, 'timeout'],
  'a reset': [(response) => response.destroy(), 'unreachable'],
  'half a response': [
    (response) => {
      response.writeHead(200, { 'content-length': '1000' })
      response.write('{"keys":[')
      setTimeout(() => response.destroy(), 10)
    },
    'unreachable',
  ],
}

/** The default deadline for a provider that is silent, and for others one that no stall of the machine exceeds. */
const deadlineFor = (fault: string) => (fault === 'timeout' ? {} : { timeoutMs: 20_000 })

describe('a provider that answers with', () => {
  it.concurrent.each(Object.entries(FAULTS))(
    '%s does not affect a cached set [R10]',
    async (_, [fault, name]) => {
      const provider = await provide(good)
      const incidents: KeySetIncident[] = []
      const { find, advance, settled } = keySetOn(provider.url, {
        ...deadlineFor(name),
        report: (incident) => incidents.push(incident),
      })
      expect(await find(signer)).toBe('ok')
      provider.behavior = fault
      advance(300)
      expect(await find(signer)).toBe('ok')
      for (let round = 0; round < 3; round++) {
        advance(60)
        expect(await find(signer)).toBe('ok')
        await settled()
      }
      expect(provider.hits).toBe(5)
      // Reported once, not per request.
      expect(incidents).toEqual([{ kind: 'refresh_failed', uri: provider.url, fault: name }])
      provider.behavior = good
      advance(60)
      expect(await find(signer)).toBe('ok')
      await settled()
      expect(incidents.at(-1)).toEqual({ kind: 'refresh_recovered', uri: provider.url })
    },
  )

  it.concurrent.each(Object.entries(FAULTS))(
    '%s is an outage for an isolate without a cached set, not an invalid token [R10]',
    async (_, [fault, name]) => {
      const provider = await provide(fault)
      expect(await keySetOn(provider.url, deadlineFor(name)).find(signer)).toBe(`key_set:${name}`)
    },
  )
})

describe('an unreachable provider', () => {
  it('redirects are never followed [R10]', async () => {
    const elsewhere = await provide(publishing([attacker.publicJwk]))
    for (const status of [301, 302, 303, 307, 308]) {
      const provider = await provide(respondingWith('', status, { location: elsewhere.url }))
      expect(await keySetOn(provider.url).find(signer)).toBe('key_set:refused')
    }
    expect(elsewhere.hits).toBe(0)
  })

  it('a refused connection and an unknown host name are outages [R09]', async () => {
    const provider = await startProvider(good)
    await provider.close()
    expect(await keySetOn(provider.url).find(signer)).toBe('key_set:unreachable')
    expect(await keySetOn('http://key-set.invalid/jwks', { timeoutMs: 20_000 }).find(signer)).toBe(
      'key_set:unreachable',
    )
  })
})

describe('a set with some unusable keys', () => {
  it('serves the usable ones and reports the unusable ones once [R10, S08]', async () => {
    const provider = await provide(
      publishing([key, { ...key, kid: 'weak', use: 'enc' }, { ...key, kid: 'off', y: key.x }]),
    )
    const incidents: KeySetIncident[] = []
    const { find, advance, settled } = keySetOn(provider.url, {
      report: (incident) => incidents.push(incident),
    })
    expect(await find(signer)).toBe('ok')
    expect(await find({ kid: 'weak', alg: 'ES256' })).toBe('token_rejected:kid_unknown')
    expect(await find({ kid: 'off', alg: 'ES256' })).toBe('token_rejected:kid_unknown')
    advance(300)
    await find(signer)
    await settled()
    expect(incidents).toEqual([
      {
        kind: 'keys_ignored',
        uri: provider.url,
        ignored: [
          { index: 1, check: 'use' },
          { index: 2, check: 'import' },
        ],
      },
    ])
  })
})
