/** `portcullis idp`: shows what the gateway knows about the tokens of identity providers. */
import type { Command } from 'commander'
import { PRESETS, type Preset, type PresetName } from '../../src/identity-providers/presets.ts'
import { NOT_VERIFIED, SOURCES, type Source } from '../../src/identity-providers/sources.ts'
import { type CommonOptions, offlineCommand } from '../command.ts'
import { usage } from '../failure.ts'
import { createOutput } from '../output.ts'

const COLUMNS = ['preset', 'provider', 'issuer', 'audience']

export function addIdpCommands(program: Command): void {
  const idp = program.command('idp').description('presets for identity providers')
  offlineCommand(idp, {
    name: 'list',
    does: 'list the presets',
    examples: ['portcullis idp list'],
  }).action((options: CommonOptions) => {
    const presets = names().map((preset) => {
      const { name: provider, issuer, audience } = SOURCES[preset]
      return { preset, provider, issuer, audience }
    })
    const answer: { readonly presets: readonly object[]; readonly cursor?: string } = { presets }
    createOutput(options.json ?? false).list(answer, presets, COLUMNS, 'presets')
  })
  offlineCommand(idp, {
    name: 'show',
    does: 'show the fields of a preset, its source, and a complete entry of ISSUERS',
    examples: ['portcullis idp show okta', 'portcullis idp show keycloak --json'],
  })
    .argument('<preset>', 'name of the preset, see `portcullis idp list`')
    .action((name: string, options: CommonOptions) => {
      const preset = names().find((known) => known === name)
      if (preset === undefined) {
        throw usage(`${name}: unknown preset; the presets are ${names().join(', ')}`)
      }
      const answer = shown(preset)
      createOutput(options.json ?? false).result(answer, textOf(answer))
    })
}

const names = () => Object.keys(PRESETS) as PresetName[]

function shown(preset: PresetName) {
  const { name: provider, ...source }: Source = SOURCES[preset]
  const fields: Preset = PRESETS[preset]
  return { preset, provider, entry: entryOf(preset, fields), fields, source }
}

/** Returns the shortest entry, with the forms of what only the operator knows. */
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

function textOf({ provider, entry, fields, source }: ReturnType<typeof shown>): string {
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
