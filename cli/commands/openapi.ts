/** `portcullis openapi`: routes from an OpenAPI document. */
import { randomUUID } from 'node:crypto'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { offlineCommand } from '../command.ts'
import { Failure, REFUSED, usage } from '../failure.ts'
import type { Imported } from '../openapi/import.ts'
import type { Note, NoteKind } from '../openapi/notes.ts'
import { createOutput, type Output } from '../output.ts'
import { counted } from '../text.ts'

interface ImportOptions {
  readonly out: string
  readonly prefix?: string
  readonly limit?: readonly string[]
  readonly jsonOnly?: boolean
  readonly remoteRefs?: boolean
  readonly check?: boolean
  readonly strict?: boolean
  readonly force?: boolean
  readonly json?: boolean
}

/** Notes of each kind that the terminal shows. The module and --json have all. */
const SHOWN = 20
const TITLES: Readonly<Record<NoteKind, string>> = {
  unmapped: 'not mapped',
  approximated: 'accepts more than the document',
  assumed: 'assumed; check',
}

const FORMS = `
The module exports routes and the schemas of their inputs. Changes belong to the policy, and survive
the next import:

  import { override } from 'portcullis/openapi-routes'
  import { routes } from './routes.generated.ts'
  ... routes: override(routes, { 'GET /orders/:id': { limits: ['standard'] } })

Exit codes: 0 done, 1 --check found a difference, --strict found parts that are not mapped, or the
document has invalid extensions, 2 wrong usage or no OpenAPI document, 3 the URL did not answer.`

export function addOpenApiCommands(program: Command): void {
  const openapi = program.command('openapi').description('import routes from OpenAPI documents')
  offlineCommand(openapi, {
    name: 'import',
    does: 'write the routes and schemas of an OpenAPI 3.0 or 3.1 document as a TypeScript module',
    examples: [
      'portcullis openapi import openapi.yaml --out routes.generated.ts',
      'portcullis openapi import https://api.example.com/openapi.json --out routes.generated.ts',
      'portcullis openapi import openapi.yaml --out routes.generated.ts --check',
    ],
  })
    .argument('<document>', 'file or URL; JSON or YAML')
    .requiredOption('--out <file>', 'the module')
    .option('--prefix <path>', 'path before all paths (default: the path of the first server)')
    .option('--limit <name...>', 'limits of routes without x-portcullis-limit')
    .option('--json-only', 'require JSON where the document allows other media types as well')
    .option('--remote-refs', 'follow references to URLs')
    .option('--check', 'write nothing; fail if the module is not current')
    .option('--strict', 'fail, and write nothing, if a part of the document is not mapped')
    .option('--force', 'replace a module that was edited')
    .addHelpText('after', FORMS)
    .action(async (document: string, options: ImportOptions) => {
      const output = createOutput(options.json ?? false)
      const prefix = options.prefix?.replace(/\/+$/, '')
      if (prefix !== undefined && prefix !== '' && !prefix.startsWith('/'))
        throw usage('--prefix must begin with a slash: --prefix /v1')
      const { importDocument } = await import('../openapi/import.ts')
      const { changeLines, changesBetween } = await import('../openapi/changes.ts')
      const { isUnedited } = await import('../openapi/module.ts')
      const before = contentOf(options.out)
      if (before !== undefined && !options.check && !options.force && !isUnedited(before))
        throw usage(
          `${options.out} is no module of this command, or was edited; move the changes to the policy ` +
            '(override), or replace the file with --force',
        )
      const imported = await importDocument(document, {
        prefix,
        limits: options.limit ?? [],
        jsonOnly: options.jsonOnly ?? false,
        remoteRefs: options.remoteRefs ?? false,
      })
      const isCurrent = before === imported.text
      const changes = changesBetween(before ?? '', imported.text)
      showNotes(output, imported.notes, options.out)
      if (before !== undefined) for (const line of changeLines(changes)) output.remark(line)
      const unmapped = imported.notes.filter(({ kind }) => kind === 'unmapped').length
      const isRefused = (options.strict === true && unmapped > 0) || (options.check && !isCurrent)
      const isWritten = !options.check && !isRefused && !isCurrent
      if (isWritten) replace(options.out, imported.text)
      const { operations, schemas, notes } = imported
      output.result(
        {
          document,
          out: options.out,
          operations,
          routes: imported.routes.length,
          schemas,
          written: isWritten,
          current: isCurrent || isWritten,
          changes,
          notes,
        },
        summary(imported),
      )
      if (options.strict && unmapped > 0)
        throw new Failure(
          REFUSED,
          'not_mapped',
          `${counted(unmapped, 'part')} of ${document} not mapped`,
        )
      if (options.check && !isCurrent)
        throw new Failure(
          REFUSED,
          'not_current',
          `${options.out} is not current; run the command without --check`,
        )
    })
}

function summary({ operations, routes, schemas, notes }: Imported): string {
  const count = (kind: NoteKind) => notes.filter((note) => note.kind === kind).length
  const parts = [`${count('unmapped')} not mapped`, `${count('approximated')} approximated`]
  return `${counted(operations, 'operation')}: ${counted(routes.length, 'route')}, ${counted(schemas, 'schema')}, ${parts.join(', ')}, ${count('assumed')} assumed.`
}

function showNotes(output: Output, notes: readonly Note[], out: string): void {
  for (const [kind, title] of Object.entries(TITLES)) {
    const some = notes.filter((note) => note.kind === kind)
    if (some.length === 0) continue
    output.remark(`${counted(some.length, 'note')}: ${title}`)
    for (const { place, message } of some.slice(0, SHOWN)) output.remark(`  ${place}: ${message}`)
    if (some.length > SHOWN)
      output.remark(`  and ${some.length - SHOWN} more, which ${out} and --json list`)
  }
}

/** Returns the text of a file, or undefined if there is none. */
function contentOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw usage(`${file} cannot be read (${code})`)
  }
}

/** Replaces a file in one step, so that a reader never finds a part of it. */
function replace(file: string, text: string): void {
  const draft = `${file}.${randomUUID()}.tmp`
  try {
    writeFileSync(draft, text, { flag: 'wx' })
    renameSync(draft, file)
  } catch (error) {
    rmSync(draft, { force: true })
    throw usage(`${file} cannot be written (${(error as NodeJS.ErrnoException).code})`)
  }
}
