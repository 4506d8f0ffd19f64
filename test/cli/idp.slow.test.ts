import { describe, expect, test } from 'vitest'
import { PRESETS } from '../../src/identity-providers/presets.ts'
import { runHere } from './command-here.ts'
import { runCli } from './command-line.ts'

describe('idp', () => {
  test('lists every preset', async () => {
    const { code, stdout, stderr } = await runCli(['idp', 'list', '--json'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const { presets } = JSON.parse(stdout)
    expect(presets.map(({ preset }: { preset: string }) => preset)).toEqual(Object.keys(PRESETS))
    expect((await runHere(['idp', 'list'])).stdout).toMatch(/^okta +Okta/m)
  })

  test('shows a preset, its entry and its source', async () => {
    const { code, stdout, stderr } = await runHere(['idp', 'show', 'okta'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('{"preset":"okta","issuer":"ISSUER","audience":"AUDIENCE"}')
    expect(stdout).toMatch(/^ {2}require +\{"jti":"AT\.\*"\}$/m)
    expect(stdout).toMatch(/^Source, read 20\d\d-\d\d-\d\d:\n {2}https:\/\/support\.okta\.com\//m)
    expect(stdout).toMatch(/^ {2}Copy: .+$/m)
    expect(stdout).toMatch(/^Not confirmed:\n {2}- jti and scp/m)
  })

  test('reports that a preset was written from source code', async () => {
    const { stdout } = await runHere(['idp', 'show', 'keycloak'])
    expect(stdout).toContain(
      "Source, not verified against the provider's documentation:\n  https://",
    )
    expect(stdout).toMatch(/^Source code, read:\n {2}keycloak\/keycloak@[0-9a-f]{12} /m)
    const { source } = JSON.parse((await runHere(['idp', 'show', 'keycloak', '--json'])).stdout)
    expect(source).not.toHaveProperty('date')
  })

  test('shows every preset as JSON', async () => {
    for (const preset of Object.keys(PRESETS)) {
      const { code, stdout } = await runHere(['idp', 'show', preset, '--json'])
      expect(code, preset).toBe(0)
      const shown = JSON.parse(stdout)
      expect(shown).toMatchObject({ preset, entry: { preset }, fields: PRESETS[preset as 'okta'] })
      expect(shown.source.links.length).toBeGreaterThan(0)
    }
  })

  test('shows what an entry must restrict, and what names tenants', async () => {
    const entryOf = async (preset: string) =>
      JSON.parse((await runHere(['idp', 'show', preset, '--json'])).stdout).entry
    expect(await entryOf('github-actions')).toEqual({
      preset: 'github-actions',
      audience: 'AUDIENCE',
      require: { repository: 'VALUE' },
    })
    expect(await entryOf('entra')).toMatchObject({ tenants: ['TENANT'] })
    expect(await entryOf('supabase')).toEqual({ preset: 'supabase', issuer: 'ISSUER' })
  })

  test('names the presets if one is unknown', async () => {
    for (const name of ['oktaa', 'constructor', '']) {
      const { code, stdout, stderr } = await runHere(['idp', 'show', name])
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toContain('the presets are auth0, authentik, ')
    }
  })
})
