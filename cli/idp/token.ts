/** `portcullis idp doctor <token>`: compares a token with the configuration of its issuer. */

import { toDotPath } from 'zod/v4/core'
import { metadataUrlsOf } from '../../src/access/tokens/discovery.ts'
import { readHeader, readPayload } from '../../src/access/tokens/jws.ts'
import { shown } from '../../src/access/tokens/rejection.ts'
import { Denied } from '../../src/errors.ts'
import { textOf } from '../../src/problems/mistake.ts'
import type { IssuerConfig } from '../../src/validators/issuer.ts'
import { isConfirmed } from '../confirm.ts'
import { type Check, doubtful, type Fields, failed, skipped } from './check.ts'
import type { Comparison } from './comparison.ts'
import { type Entries, type IdpDoctorOptions, parsed, readEntries } from './configuration.ts'
import { mayBeCalled, type Selected, selectEntry } from './entry.ts'
import { type Keys, keysOf } from './keys.ts'
import {
  errorsIn,
  idTokenWarning,
  type Repaired,
  repair,
  type Suggestion,
  type Verdict,
  verdictOf,
} from './proposed-entry.ts'
import { isSameProvider, presetOf, providerOf } from './providers.ts'
import { report } from './report.ts'
import type { Presented } from './rules.ts'
import { tokenChecks } from './token-checks.ts'

export async function examineToken(token: string, options: IdpDoctorOptions): Promise<void> {
  const stop = (...checks: Check[]) => report(checks, undefined, '', options)
  const entries = await readEntries(options)
  const presented = presentedIn(token)
  if ('level' in presented) return stop(presented)
  const { iss } = presented.payload
  if (typeof iss !== 'string' || iss === '') {
    const remedy = 'Send a token of a provider that names itself in iss'
    return stop(failed('iss', iss, 'the token has no issuer (iss)', { remedy }))
  }
  const selected = selectEntry(iss, presented.payload, entries, options)
  const { mistakes, configs } = parsed([selected.fields])
  const config = configs.find(({ issuer }) => issuer === iss)
  const invalid = entries.mistakes.map((mistake) => entryMistake(textOf(mistake)))
  if (config === undefined) {
    const own = mistakes.map(({ path: [, , ...path], message }) => {
      const field = toDotPath(path)
      return entryMistake(`${selected.of}${field === '' ? '' : `.${field}`}: ${message}`)
    })
    return stop(...invalid, selected.check, ...own)
  }
  const keys = await keysFor(config, selected, entries, options)
  const { fields, of } = selected
  const nowMs = Date.now()
  const comparison = { presented, fields, config, of, ring: keys.ring, nowMs }
  const checks = await diagnose(comparison, selected, keys)
  const all = [...invalid, ...checks.found]
  report(all, checks.suggestion, `${of} accepts the token`, options)
}

const entryMistake = (mistake: string): Check =>
  failed('configuration', 'not valid', mistake, {
    remedy:
      'Correct the entry; docs/issuers.md lists its fields, and portcullis idp show those of a preset',
  })

/** Reads a token, or returns the mistake in its form. Repeats nothing of it. */
function presentedIn(token: string): Presented | Check {
  try {
    return { token, header: readHeader(token), payload: readPayload(token) }
  } catch (error) {
    if (!(error instanceof Denied) || error.denial.code !== 'token_rejected') throw error
    return malformed(token, error.denial.check)
  }
}

function malformed(token: string, check: string): Check {
  const { length } = token.split('.')
  const seen = `${token.length} characters, ${length} parts`
  const mistake = (text: string, remedy: string): Check => ({
    ...failed('form', undefined, text, { expected: 'a signed JWT', remedy }),
    seen,
  })
  if (length === 5) {
    return mistake(
      'the token is encrypted (JWE), and only its recipient can read it',
      'Configure the provider to issue signed access tokens that are not encrypted',
    )
  }
  if (length !== 3) {
    return mistake(
      'the token is opaque, not a JWT, so it contains nothing that can be verified here',
      'Request JWT access tokens: most providers issue them for the audience of an API. If the provider has none, add introspection or userinfo to its entry of ISSUERS. A token of a Portcullis gateway itself is checked by portcullis token verify',
    )
  }
  return mistake(
    `the token is not a well-formed signed JWT (${check})`,
    'Copy the token again, completely and without quotation marks',
  )
}

/** Fetches the keys if the issuer is trusted, or if a person agrees. Sends nothing of the token. */
async function keysFor(
  config: IssuerConfig,
  selected: Selected,
  entries: Entries,
  options: IdpDoctorOptions,
): Promise<Keys> {
  if (mayBeCalled(config, selected, entries, options) || options.yes) return keysOf(config)
  const { host } = new URL(config.jwksUri ?? metadataUrlsOf(config.issuer)[0])
  const question = `The token names the issuer ${shown(config.issuer)}, which is not configured. Fetch its keys from ${host}?`
  if (!options.json && (await isConfirmed(question))) return keysOf(config)
  const why = `${host} was not called, because only the token names it; use --issuer, or --yes`
  return { checks: [skipped('key set', why)] }
}

async function diagnose(comparison: Comparison, selected: Selected, keys: Keys) {
  const { presented, nowMs } = comparison
  const repaired = await repairWithPreset(comparison)
  // Defaults are no expectation of the operator: a new entry is judged with the changes.
  const judged = selected.entry === undefined ? { ...comparison, ...repaired } : comparison
  const [use, ...others] = await tokenChecks(judged)
  const verdict = await verdictOf(presented.token, judged.config, keys, nowMs)
  const found = [selected.check, ...(use ? [useCheck(use, verdict, comparison)] : [])]
  if (selected.entry !== undefined && repaired.preset !== undefined)
    found.push(presetCheck(comparison, repaired.preset))
  found.push(...keys.checks, ...others)
  if (errorsIn(found) === 0 && verdict.startsWith('rejected')) {
    const remedy = 'Compare the claims of the token with docs/issuers.md'
    found.push(failed('verifier', verdict, `the token is ${verdict}`, { remedy }))
  }
  const isForged = others.some(
    ({ level, check }) => level === 'error' && /^(key|signature)$/.test(check),
  )
  const isWithheld = isForged || use?.level === 'error'
  const suggestion = isWithheld ? undefined : await suggest(judged, repaired, selected, keys)
  return { found, suggestion }
}

/** An ID token that an entry accepts is a mistake of the entry. */
function useCheck(use: Check, verdict: Verdict, { of }: Comparison): Check {
  if (use.level === 'ok' || verdict !== 'accepted') return use
  const mistake = `this is an ID token, and ${of} accepts it as an access token`
  return {
    ...use,
    mistake,
    remedy: 'Add a rule in require that only access tokens of the provider meet',
  }
}

/** Repairs an entry with the preset of the provider if that leaves fewer mistakes. */
async function repairWithPreset(
  comparison: Comparison,
): Promise<Repaired & { readonly preset?: string }> {
  const { fields, config, presented } = comparison
  const plain = await repair(comparison)
  const preset = betterPreset(fields.preset, config.issuer, presented.payload)
  const before = errorsIn(await tokenChecks(comparison))
  if (preset === undefined || before === 0) return plain
  const withPreset: Fields = { ...fields, preset }
  const other = parsed([withPreset]).configs.find(({ issuer }) => issuer === config.issuer)
  if (other === undefined) return plain
  const variant = { ...comparison, fields: withPreset, config: other }
  const after = errorsIn(await tokenChecks(variant))
  return after < before ? { ...(await repair(variant)), preset } : plain
}

function betterPreset(own: unknown, issuer: string, payload: Fields): string | undefined {
  if (own === 'cognito-id' && payload.token_use === 'access') return 'cognito'
  const preset = presetOf(issuer, payload)
  if (preset === undefined || (typeof own === 'string' && isSameProvider(own, preset)))
    return undefined
  return preset
}

function presetCheck({ fields, of }: Comparison, preset: string): Check {
  const provider = providerOf(preset as 'okta')
  const remedy = `Set the preset ${shown(preset)}; portcullis idp show ${preset} describes it`
  if (fields.preset === undefined) {
    return doubtful('preset', undefined, `the token is of ${provider}, and ${of} has no preset`, {
      remedy,
    })
  }
  const mistake = `${of} has the preset ${shown(fields.preset)}, and the token is of ${provider}`
  return failed('preset', fields.preset, mistake, { expected: shown(preset), remedy })
}

async function suggest(
  comparison: Comparison,
  repaired: Repaired,
  selected: Selected,
  keys: Keys,
): Promise<Suggestion | undefined> {
  const { presented, nowMs } = comparison
  const { entry } = selected
  const before: Fields = entry?.fields ?? {}
  const changed = Object.entries(repaired.fields).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
  )
  if (changed.length === 0) return undefined
  const warning = await idTokenWarning({ ...comparison, ...repaired })
  return {
    ...(entry?.index !== undefined && { index: entry.index }),
    fields: Object.fromEntries(changed),
    verdict: await verdictOf(presented.token, repaired.config, keys, nowMs),
    notes: [
      ...(warning === undefined ? [] : [warning]),
      ...selected.conditions,
      ...repaired.conditions,
    ],
  }
}
