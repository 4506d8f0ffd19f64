/** The identity providers that an answer can name: the presets of `ISSUERS`, and any other. */
import { PRESETS, type Preset, type PresetName } from '../../../src/identity-providers/presets.ts'
import { SOURCES } from '../../../src/identity-providers/sources.ts'

export interface IdentityProvider {
  /** The value of `--idp`. */
  readonly name: string
  /** The name that the provider has for people. */
  readonly title: string
  /** The form of the issuer identifier; words in capitals are to be replaced. */
  readonly issuer: string
  /** The meaning of the audience at this provider. */
  readonly audience: string
  /** Whether an entry without its own issuer is complete. */
  readonly hasIssuer: boolean
  /** Whether an entry without its own audience is complete. */
  readonly hasAudience: boolean
  /** Notes for the operator, for the README. */
  readonly notes: readonly string[]
  readonly preset: PresetName | undefined
}

const OTHER: IdentityProvider = {
  name: 'other',
  title: 'Another one (OAuth 2 with JWT access tokens)',
  issuer: 'https://ISSUER',
  audience: 'the identifier of the API',
  hasIssuer: false,
  hasAudience: false,
  notes: [
    'Tokens must be those of RFC 9068, with the roles in the claim roles. Fields of the entry adapt it to others.',
  ],
  preset: undefined,
}

export const PROVIDERS: readonly IdentityProvider[] = [
  ...(Object.keys(PRESETS) as PresetName[]).flatMap(providerOf),
  OTHER,
]

/** Returns nothing for a preset that needs more than an issuer and an audience. */
function providerOf(preset: PresetName): readonly IdentityProvider[] {
  const fields: Preset = PRESETS[preset]
  if (fields.restrict !== undefined) return []
  const { name: title, issuer, audience, notes } = SOURCES[preset]
  return [
    {
      name: preset,
      title,
      issuer,
      audience,
      hasIssuer: fields.issuer !== undefined && !fields.issuer.includes('{tenantid}'),
      hasAudience: fields.audience !== undefined,
      notes,
      preset,
    },
  ]
}

/** What the flags or the questions say about the issuer of access tokens. */
export interface Issuer {
  readonly provider: IdentityProvider
  readonly issuer: string | undefined
  readonly audience: string | undefined
}

/** Returns the shortest entry of `ISSUERS`. */
export function entryOf({ provider: { preset }, issuer, audience }: Issuer): object {
  return {
    ...(preset !== undefined && { preset }),
    ...(issuer !== undefined && { issuer }),
    ...(audience !== undefined && { audience }),
  }
}
