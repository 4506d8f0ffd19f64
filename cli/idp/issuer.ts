/** `portcullis idp doctor <issuer>`: checks what an issuer publishes, and suggests its entry. */

import { shown } from '../../src/access/tokens/rejection.ts'
import { textOf } from '../../src/problems/mistake.ts'
import { DEFAULT_ALGORITHMS } from '../../src/validators/issuer.ts'
import { type Check, doubtful, type Fields, failed, passed } from './check.ts'
import { type IdpDoctorOptions, parsed, readEntries } from './configuration.ts'
import { selectEntry } from './entry.ts'
import { type Keys, keysOf } from './keys.ts'
import type { Suggestion } from './proposed-entry.ts'
import { report } from './report.ts'

const WELL_KNOWN = /\/\.well-known\/(openid-configuration|oauth-authorization-server).*$/
const ENDPOINTS = ['authorization', 'token', 'userinfo', 'introspection', 'revocation']

export async function examineIssuer(argument: string, options: IdpDoctorOptions): Promise<void> {
  const url = argument.replace(WELL_KNOWN, '')
  const entries = await readEntries(options)
  const selected = selectEntry(url, undefined, entries, options)
  const found: Check[] = entries.mistakes.map((mistake) =>
    failed('configuration', 'not valid', textOf(mistake), {
      remedy: 'Correct the entry; docs/issuers.md lists its fields',
    }),
  )
  if (url !== argument) {
    const remedy = 'Use the issuer that the metadata names'
    found.push(
      failed('issuer', argument, 'this is the URL of the metadata, not the issuer', { remedy }),
    )
  }
  const { configs, mistakes } = parsed([selected.fields])
  const config = configs.find(({ issuer }) => issuer === url)
  if (config === undefined) {
    const remedy = 'Use the issuer as in iss of a token, or as in its metadata'
    found.push(...mistakes.map((one) => failed('issuer', url, textOf(one), { remedy })))
    return report(found, undefined, '', options)
  }
  const keys = await keysOf(config)
  const named = keys.metadata?.issuer
  // Only the slash at the end is corrected. Any other issuer may be a stranger.
  const isSlash = named === `${url}/` || `${named}/` === url
  const issuer = isSlash ? String(named) : url
  // An issuer that is not configured is what the command is for.
  const { check, entry } = selected
  const isNew = entry === undefined && check.level === 'error'
  const corrected = isSlash ? await keysOf({ ...config, issuer }) : keys
  found.push(
    isNew ? { ...check, level: 'warning' } : check,
    ...keys.checks,
    ...algorithms(corrected),
    ...endpoints(keys),
  )
  const suggestion = suggest({ ...selected.fields, issuer }, entry, corrected)
  report(found, suggestion, `${issuer} can be used`, options)
}

function algorithmsOf({ ring }: Keys): readonly string[] {
  return [...new Set([...(ring ?? [])].map(({ algorithm }) => algorithm))].sort()
}

function algorithms(keys: Keys): readonly Check[] {
  const announced = keys.metadata?.id_token_signing_alg_values_supported
  if (!Array.isArray(announced) || keys.ring === undefined) return []
  const usable = algorithmsOf(keys)
  if (announced.some((name) => usable.includes(String(name))))
    return [passed('algorithms', announced, usable)]
  const mistake = `the issuer announces ${shown(announced)}, and its keys are for ${usable.join(', ')}`
  const remedy = 'Configure the provider to sign with RS256 or ES256, and examine a token'
  return [doubtful('algorithms', announced, mistake, { remedy })]
}

function endpoints({ metadata = {} }: Keys): readonly Check[] {
  return ENDPOINTS.flatMap((name) => {
    const value = metadata[`${name}_endpoint`]
    return value === undefined ? [] : [passed(`${name} endpoint`, value)]
  })
}

function suggest(
  fields: Fields,
  entry: ReturnType<typeof selectEntry>['entry'],
  keys: Keys,
): Suggestion | undefined {
  if (keys.ring === undefined) return undefined
  const usable = algorithmsOf(keys)
  const isDefault = usable.some((name) => DEFAULT_ALGORITHMS.some((one) => one === name))
  const all: Fields = { ...fields, ...(!isDefault && { algorithms: usable }) }
  const before: Fields = entry?.fields ?? {}
  const changed = Object.entries(all).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
  )
  if (changed.length === 0) return undefined
  return {
    ...(entry?.index !== undefined && { index: entry.index }),
    fields: Object.fromEntries(changed),
    notes: ['Examine an access token as well: only a token shows its typ, audience and roles.'],
  }
}
