/** `portcullis openapi import`: writes a module, and reports what changed and what is not mapped. */
import { randomUUID } from 'node:crypto'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { refused, usage } from '../failure.ts'
import { createOutput, type Output } from '../output.ts'
import { createProgress } from '../progress.ts'
import { counted, visible } from '../text.ts'
import { changeLines, changesBetween } from './changes.ts'
import { type Imported, importDocument } from './import.ts'
import { isUnedited } from './module.ts'
import type { Note, NoteKind } from './notes.ts'

export interface ImportCommandOptions {
  readonly out: string
  readonly prefix?: string
  readonly limit?: readonly string[]
  readonly anonymousLimit?: readonly string[]
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
  ignored: 'without effect on requests',
}

/** Runs the command. Throws a `Failure` for a document or a module that is refused. */
export async function importRoutes(document: string, options: ImportCommandOptions): Promise<void> {
  const output = createOutput(options.json ?? false)
  const prefix = options.prefix?.replace(/\/+$/, '')
  if (prefix !== undefined && prefix !== '' && !prefix.startsWith('/'))
    throw usage('--prefix must begin with a slash: --prefix /v1')
  const before = contentOf(options.out)
  if (before !== undefined && !options.check && !options.force && !isUnedited(before))
    throw usage(
      `${options.out} is no module of this command, or was edited; move the changes to the policy ` +
        '(override), or replace the file with --force',
    )
  const progress = createProgress(!options.json)
  const imported = await importDocument(document, {
    prefix,
    limits: options.limit ?? [],
    anonymousLimits: options.anonymousLimit ?? [],
    jsonOnly: options.jsonOnly ?? false,
    remoteRefs: options.remoteRefs ?? false,
    progress,
  }).finally(progress.end)
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
      nodes: imported.nodes,
      notes,
    },
    summary(imported),
  )
  if (options.strict && unmapped > 0)
    throw refused('not_mapped', `${counted(unmapped, 'part')} of ${document} not mapped`)
  if (options.check && !isCurrent)
    throw refused('not_current', `${options.out} is not current; run the command without --check`)
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
    if (kind === 'ignored') {
      const names = [...new Set(some.map(({ place }) => place))].sort()
      output.remark(visible(`${title}: ${names.join(', ')}`))
      continue
    }
    output.remark(`${counted(some.length, 'note')}: ${title}`)
    for (const { place, message } of some.slice(0, SHOWN))
      output.remark(visible(`  ${place}: ${message}`))
    if (some.length > SHOWN)
      output.remark(`  and ${some.length - SHOWN} more, which ${out} and --json list`)
  }
}

/** Returns the text of a file, or undefined if there is none. */
export function contentOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw usage(`${file} cannot be read (${code})`)
  }
}

/** Replaces a file in one step, so that a reader never finds a part of it. */
export function replace(file: string, text: string): void {
  const draft = `${file}.${randomUUID()}.tmp`
  try {
    writeFileSync(draft, text, { flag: 'wx' })
    renameSync(draft, file)
  } catch (error) {
    rmSync(draft, { force: true })
    throw usage(`${file} cannot be written (${(error as NodeJS.ErrnoException).code})`)
  }
}
