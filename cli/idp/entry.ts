/** Selects the entry of `ISSUERS` that a token or an issuer is compared with, or composes one. */

import { shown } from '../../src/access/tokens/rejection.ts'
import { PRESETS, type Preset } from '../../src/identity-providers/presets.ts'
import { SOURCES } from '../../src/identity-providers/sources.ts'
import type { IssuerConfig } from '../../src/validators/issuer.ts'
import { type Check, type Fields, failed, passed } from './check.ts'
import { isPlainName } from './claims.ts'
import {
  type Entries,
  type Entry,
  fieldsOf,
  type IdpDoctorOptions,
  parsed,
} from './configuration.ts'
import { type Difference, differenceOf, hasSameMetadata, presetOf } from './providers.ts'
import { claimsOf } from './rules.ts'

export interface Selected {
  /** About the issuer. */
  readonly check: Check
  readonly of: string
  /** The entry as it is written now. Undefined if there is none. */
  readonly entry: Entry | undefined
  /** The fields to compare with: of the entry, with the changes of options and of the issuer. */
  readonly fields: Fields
  /** The decisions about the issuer that the operator must make. */
  readonly conditions: readonly string[]
}

/**
 * Selects the entry for an issuer. `payload` is undefined if there is no token: an issuer of another
 * tenant is then another issuer.
 */
export function selectEntry(
  issuer: string,
  payload: Fields | undefined,
  { all }: Entries,
  options: IdpDoctorOptions,
): Selected {
  const candidates = candidatesOf(all ?? [], options)
  const configured = candidates.flatMap(({ configs }) => configs.map((config) => config.issuer))
  const exact = candidates.find(({ configs }) => configs.some((one) => one.issuer === issuer))
  if (exact !== undefined) {
    const check = passed('iss', issuer, configured)
    return { check, ...comparedWith(exact, {}, issuer, payload, options) }
  }
  const near = nearest(issuer, candidates)
  const expected = configured.length === 0 ? 'no issuer is configured' : shown(configured)
  if (near !== undefined && (near.isSpelling || payload !== undefined)) {
    const { entry, mistake, remedy, isSpelling } = near
    const check = failed('iss', issuer, mistake, { expected, remedy })
    const { tenants } = entry.fields
    const place = Array.isArray(tenants) ? { tenants: [...tenants, payload?.tid] } : { issuer }
    const compared = comparedWith(entry, place, issuer, payload, options)
    const conditions = isSpelling ? compared.conditions : [...compared.conditions, OTHER_ISSUER]
    return { check, ...compared, conditions }
  }
  const mistake =
    options.issuer !== undefined
      ? `the issuer of the token is ${shown(issuer)}, and --issuer names ${shown(options.issuer)}`
      : all === undefined
        ? `there is no ISSUERS to compare with, so the issuer ${shown(issuer)} is not configured`
        : `the issuer ${shown(issuer)} is not in ISSUERS`
  const remedy =
    'Add an entry, if you trust the issuer. Name another configuration with --issuers or --values'
  const check = failed('iss', issuer, mistake, { expected, remedy })
  const { fields, conditions } = newFields(issuer, payload ?? {}, options)
  return { check, of: 'a new entry', entry: undefined, fields, conditions }
}

const OTHER_ISSUER =
  'issuer: only if its tokens must be accepted instead of those of the configured issuer'

/** An entry that only options describe is composed, as if there were none. */
function comparedWith(
  entry: Entry,
  changes: Fields,
  issuer: string,
  payload: Fields | undefined,
  options: IdpDoctorOptions,
): Omit<Selected, 'check'> {
  const of = nameOf(entry)
  if (entry.index === undefined) {
    return { of, entry: undefined, ...newFields(issuer, payload ?? {}, options) }
  }
  const fields = { ...entry.fields, ...changes, ...fieldsOf(options) }
  return { of, entry, fields, conditions: [] }
}

/** An issuer that an option names replaces those of the configuration, unless it is one of them. */
function candidatesOf(all: readonly Entry[], options: IdpDoctorOptions): readonly Entry[] {
  const { issuer } = options
  if (issuer === undefined) return all
  const known = all.filter(({ configs }) => configs.some((one) => one.issuer === issuer))
  if (known.length > 0) return known
  const { fields } = newFields(issuer, {}, options)
  return [{ index: undefined, fields, configs: parsed([fields]).configs }]
}

const nameOf = ({ index }: Entry): string =>
  index === undefined ? 'the entry for --issuer' : `ISSUERS[${index}]`

function nearest(issuer: string, entries: readonly Entry[]) {
  const found: (Difference & { readonly entry: Entry })[] = []
  for (const entry of entries) {
    for (const config of entry.configs) {
      const difference = differenceOf(issuer, config.issuer, nameOf(entry))
      if (difference !== undefined) found.push({ ...difference, entry })
    }
  }
  return found.find(({ isSpelling }) => isSpelling) ?? found[0]
}

/** Placeholder for the audience, which the operator must insert. */
const AUDIENCE = 'AUDIENCE'

/** Composes an entry: the preset of the provider, and the audience of the token. */
function newFields(
  issuer: string,
  payload: Fields,
  options: IdpDoctorOptions,
): { readonly fields: Fields; readonly conditions: readonly string[] } {
  const preset = options.preset ?? presetOf(issuer, payload)
  const row: Preset | undefined = PRESETS[preset as keyof typeof PRESETS]
  const [claim] = row?.restrict?.filter((name) => isPlainName(payload[name])) ?? []
  const conditions: string[] = []
  const fields: Record<string, unknown> = {
    ...(preset !== undefined && { preset }),
    issuer,
    ...(row?.audience === undefined && { audience: AUDIENCE }),
    ...(claim !== undefined && { require: { [claim]: payload[claim] } }),
    ...fieldsOf(options),
  }
  if (claim !== undefined) conditions.push(`require: restricts the tokens to this ${claim}`)
  const [config] = parsed([fields]).configs
  if (config === undefined || fields.audience !== AUDIENCE) return { fields, conditions }
  const names = [claimsOf(config, payload).aud].flat().filter(isPlainName)
  if (names.length > 0) {
    fields.audience = names.length === 1 ? names[0] : names
    const form = preset === undefined ? 'the name of this API' : SOURCES[preset as 'okta'].audience
    conditions.push(`audience: copied from the token; it must be ${form}`)
  }
  return { fields, conditions }
}

/** Reports whether the keys may be fetched: of a configured issuer, a named one, or a configured URL. */
export function mayBeCalled(
  config: IssuerConfig,
  { entry }: Selected,
  { all }: Entries,
  { issuer }: IdpDoctorOptions,
): boolean {
  if (config.jwks !== undefined || (entry?.index !== undefined && entry.fields.jwksUri)) return true
  const known = (all ?? []).flatMap(({ configs }) => configs.map((one) => one.issuer))
  return [...known, ...(issuer === undefined ? [] : [issuer])].some((one) =>
    hasSameMetadata(one, config.issuer),
  )
}
