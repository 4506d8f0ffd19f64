/** `preset` of an entry of `ISSUERS`. */
import * as z from 'zod/mini'
import { PRESETS, type Preset } from '../identity-providers/presets.ts'
import { requirements } from './claim-requirements.ts'

/** Presets of the sign-in, which users may expect here. */
const OF_SIGN_IN = ['github']

/**
 * Completes an entry with the fields of its preset. Rules are combined: a rule of the entry replaces
 * the preset's rule for the same claim only.
 */
export function withPreset(entry: unknown, context: z.core.ParsePayload): unknown {
  const { preset: name, ...own } = (entry ?? {}) as Record<string, unknown>
  if (name === undefined) return entry
  const presets: Readonly<Record<string, Preset>> = PRESETS
  const isKnown = typeof name === 'string' && Object.hasOwn(presets, name)
  const preset = isKnown ? presets[name] : undefined
  if (preset === undefined) {
    const elsewhere = OF_SIGN_IN.some((one) => one === name)
      ? `; "${name}" is a preset for signIn of ISSUER_CLIENTS; here, set issuer`
      : ''
    const message = `must be one of ${Object.keys(presets).join(', ')}${elsewhere}`
    context.issues.push({ code: 'custom', path: ['preset'], message, input: name })
    return z.NEVER
  }
  // The fields are trimmed later, which is too late for a URL that contains the issuer.
  if (typeof own.issuer === 'string') own.issuer = own.issuer.trim()
  const { restrict = [], ...fields } = preset
  const rules = requirements.safeParse(own.require ?? {}).data
  if (restrict.length > 0 && !restrict.some((claim) => (rules?.[claim] ?? '*') !== '*')) {
    const message = `must restrict one of ${restrict.join(', ')}: other accounts of the provider get tokens for your audience too`
    context.issues.push({ code: 'custom', path: ['require'], message, input: own.require })
    return z.NEVER
  }
  const all: Record<string, unknown> = { ...fields }
  for (const [field, value] of Object.entries(own)) if (value !== undefined) all[field] = value
  if (rules !== undefined) all.require = { ...fields.require, ...rules }
  if ((own.jwks ?? own.keySet) !== undefined) all.jwksUri = own.jwksUri
  else if (own.jwksUri === undefined && typeof all.issuer === 'string')
    all.jwksUri = fields.jwksUri?.replace('{issuer}', all.issuer.replace(/\/$/, ''))
  if (fields.audience === '{issuer}') all.audience = [all.issuer, own.audience ?? []].flat()
  return all
}
