/** Renders what the gateway did with the tokens of each preset, as a document. */
import type { PresetName } from '../../src/identity-providers/presets.ts'
import { DOCUMENTED } from './documented-tokens.ts'

/** Outcomes: `200`, or a status with the reason of the audit event. Several are joined. */
export interface Measured {
  /** By the name of the token, as in `DOCUMENTED`. */
  readonly accepted: Readonly<Record<string, string>>
  readonly refused: Readonly<Record<string, string>>
  readonly 'access token': string
  readonly 'without roles': string
  readonly expired: string
  readonly 'logout token': string
  /** Of tokens that state that they are refresh tokens. */
  readonly 'refresh token': string
  readonly revoked: string
}

const OF_PROVIDER = ['ID token', 'other audience', 'other client', 'other tenant'] as const
const HEADINGS = [
  ...['preset', 'access token', 'without roles', ...OF_PROVIDER],
  ...['expired', 'logout token', 'refresh token', 'revoked'],
]

const INTRODUCTION = `# Acceptance of the presets

\`npx vitest run test/identity-providers/presets.slow.test.ts -u\` generates this document, and the same test fails if it differs.

Each row is one preset with its entry of the [guide](../identity-providers.md). Only the key set is replaced by keys of the test. The
tokens are in the shape that the provider documents. A gateway over a real Redis gets each token as a request to a route that requires
a role, in front of a server that counts its requests. A refused request did not reach that server.

The columns contain the status, and for 401 the check that refused the token. *Other tenant* is another tenant, organization, project,
region, user pool or instance of the provider. *Logout token* and *refresh token* are several tokens: by the type in the header, by the
claim \`events\`, and by the kind that the token states; where the provider issues refresh tokens as JWTs, that token too. *Revoked*
contains what was revoked before the request: the token by its id, or the subject. A token without an id is revoked by its subject
only.
`

/** Returns the document. */
export function acceptanceTable(all: readonly (readonly [PresetName, Measured])[]): string {
  const notes: string[] = []
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`

  function ofProvider(preset: PresetName, { refused }: Measured, what: string): string {
    const outcome = refused[what]
    if (outcome !== undefined) return short(outcome)
    const number = notes.push(`${preset}, ${what}: ${DOCUMENTED[preset].refused[what]}`)
    return `none (${number})`
  }

  const table = all.map(([preset, measured]) =>
    line([
      preset,
      measured['access token'],
      short(measured['without roles']),
      ...OF_PROVIDER.map((what) => ofProvider(preset, measured, what)),
      short(measured.expired),
      short(measured['logout token']),
      short([measured.refused['refresh token'] ?? [], measured['refresh token']].flat().join(', ')),
      short(measured.revoked),
    ]),
  )
  return [
    INTRODUCTION,
    line(HEADINGS),
    line(HEADINGS.map(() => '---')),
    ...table,
    '',
    ...notes.map((note, index) => `${index + 1}. ${note}`),
    '',
  ].join('\n')
}

/** Shortens outcomes, and names each once: `401 typ, refused_claim`. */
function short(outcomes: string): string {
  const [status = ''] = outcomes.split(' ')
  if (status === '403') return status
  const checks = outcomes.split(', ').map((outcome) => outcome.replace(/^401 \w+:/, ''))
  return `${status} ${[...new Set(checks)].join(', ')}`
}
