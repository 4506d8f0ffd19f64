/** `portcullis idp`: presets of identity providers, and what is wrong with their tokens. */
import type { Command } from '@commander-js/extra-typings'
import { authTimeText } from '../../src/identity-providers/auth-times.ts'
import { PRESETS, type Preset, type PresetName } from '../../src/identity-providers/presets.ts'
import { NOT_VERIFIED, SOURCES, type Source } from '../../src/identity-providers/sources.ts'
import { withSuggestion } from '../../src/suggestions/did-you-mean.ts'
import { repeated } from '../arguments.ts'
import { offlineCommand, wide } from '../command.ts'
import { PRODUCTION } from '../deploy/environment.ts'
import { usage } from '../failure.ts'
import { createOutput } from '../output.ts'

const COLUMNS = ['preset', 'provider', 'issuer', 'audience']

const DOCTOR_HELP = `
<subject> is an access token, - to read it from standard input, or the http or https URL of an issuer.
Prefer -, because arguments are visible to other users of the machine. The first line of the output names
the mistake. All checks follow, and an entry of ISSUERS that corrects the mistake. The verifier of the
gateway decides each check.

The token is sent nowhere. Only the metadata and the key set of an issuer are fetched, over https or from
this machine. The issuer must be in ISSUERS, or be named with --issuer. Otherwise the command
requires a confirmation, or --yes: anybody can write a token that names any issuer.

ISSUERS is read from --issuers, or from the environment, the file of --values, .dev.vars, [vars] in
wrangler.toml, or the issuers of the policy, in this order.

Exit codes: 0 no errors, 1 errors, 2 wrong usage. Warnings do not change the exit code.`

export function addIdpCommands(program: Command): void {
  const idp = program
    .command('idp')
    .description('presets for identity providers, and a check of their tokens')
  wide(
    offlineCommand(idp, {
      name: 'list',
      does: 'list the presets',
      examples: ['portcullis idp list'],
    }),
  ).action((options) => {
    const presets = names().map((preset) => {
      const { name: provider, issuer, audience } = SOURCES[preset]
      return { preset, provider, issuer, audience }
    })
    const answer: { readonly presets: readonly object[]; readonly cursor?: string } = { presets }
    createOutput(options.json ?? false, options.wide).list(answer, presets, COLUMNS, 'presets')
  })
  offlineCommand(idp, {
    name: 'show',
    does: 'show the fields of a preset, its source, and a complete entry of ISSUERS',
    examples: ['portcullis idp show okta', 'portcullis idp show keycloak --json'],
  })
    .argument('<preset>', 'name of the preset, see `portcullis idp list`')
    .action((name, options) => {
      const preset = names().find((known) => known === name)
      if (preset === undefined) {
        throw usage(
          withSuggestion(`${name}: unknown preset`, name, names()) +
            `; the presets are ${names().join(', ')}`,
        )
      }
      const answer = shown(preset)
      createOutput(options.json ?? false).result(answer, textOf(answer))
    })
  addDoctor(idp)
}

function addDoctor(idp: Command): void {
  offlineCommand(idp, {
    name: 'doctor',
    does: 'show why a gateway refuses a token, and how to correct the entry of ISSUERS',
    examples: [
      'portcullis idp doctor - < token.txt',
      'portcullis idp doctor - --issuers issuers.json --json < token.txt',
      'portcullis idp doctor - --issuer https://sso.example.com/realms/shop --audience orders-api < token.txt',
      'portcullis idp doctor https://tenant.eu.auth0.com/ --audience https://api.example.com',
    ],
  })
    .argument('<subject>', 'a token, - for a token from standard input, or the URL of an issuer')
    .option('--issuers <json>', 'ISSUERS to compare with: a file, or JSON')
    .option('--issuer <url>', 'the issuer of the token; its keys are fetched without confirmation')
    .option('--audience <name>', 'audience, instead of that of the entry; repeatable', repeated)
    .option('--preset <name>', 'preset, instead of that of the entry')
    .option('--env <name>', 'environment, such as staging', PRODUCTION)
    .option('--values <file>', 'file with values (default: .portcullis/<env>.env)')
    .option('--all', 'also show the checks that passed')
    .option('--wide', 'lines longer than the terminal, instead of wrapped ones')
    .option('-y, --yes', 'fetch the keys of an issuer that only the token names')
    .addHelpText('after', DOCTOR_HELP)
    .action(async (subject, options) => {
      const { examineProvider } = await import('../examinations.ts')
      await examineProvider(subject, options)
    })
}

const names = () => Object.keys(PRESETS) as PresetName[]

function shown(preset: PresetName) {
  const { name: provider, ...source }: Source = SOURCES[preset]
  const fields: Preset = PRESETS[preset]
  return { preset, provider, entry: entryOf(preset, fields), fields, source }
}

/** Returns the shortest entry, with placeholders for the values that the operator must insert. */
function entryOf(preset: PresetName, { issuer, audience, restrict }: Preset): object {
  const claim = restrict?.[0]
  return {
    preset,
    ...(issuer === undefined && { issuer: 'ISSUER' }),
    ...(issuer?.includes('{tenantid}') && { tenants: ['TENANT'] }),
    ...(audience === undefined && { audience: 'AUDIENCE' }),
    ...(claim !== undefined && { require: { [claim]: 'VALUE' } }),
  }
}

function textOf({ preset, provider, entry, fields, source }: ReturnType<typeof shown>): string {
  const lines = Object.entries(fields).map(
    ([field, value]) => `  ${field.padEnd(15)} ${JSON.stringify(value)}`,
  )
  return [
    provider,
    '',
    'Entry of ISSUERS:',
    `  ${JSON.stringify(entry)}`,
    `  issuer: ${source.issuer}`,
    `  audience: ${source.audience}`,
    '',
    'Fields of the preset, which the entry can replace:',
    ...lines,
    '',
    'Notes:',
    ...source.notes.map((note) => `  - ${note}`),
    `  - Age of a sign-in: ${authTimeText(preset)}.`,
    '',
    ...sourceLines(source),
  ].join('\n')
}

/** Says what the preset was written from, and what nothing confirmed. */
function sourceLines({ links, date, copy, code = [], unverified = [] }: Omit<Source, 'name'>) {
  const lines = [date === undefined ? `Source, ${NOT_VERIFIED}:` : `Source, read ${date}:`]
  lines.push(...links.map((link) => `  ${link}`))
  if (copy !== undefined) lines.push(`  Copy: ${copy}`)
  if (code.length > 0) lines.push('', 'Source code, read:', ...code.map((one) => `  ${one}`))
  if (unverified.length > 0) {
    lines.push('', 'Not confirmed:', ...unverified.map((one) => `  - ${one}`))
  }
  return lines
}
