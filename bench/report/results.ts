/** Selects and reads the results files of the report. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import * as z from 'zod'
import {
  type Compared,
  type Profile,
  type Result,
  resultSchema,
  type Soak,
  type Suite,
} from './schema.ts'

export interface Saved<Of> {
  /** Absolute path. */
  readonly path: string
  readonly result: Of
}

/** All results of a report. Never empty. */
export interface Results {
  /** The suite, with newer results of single scenarios. */
  readonly suite: Saved<Suite> | undefined
  /** The runs of single scenarios that replace results of the suite, oldest first. */
  readonly again: readonly Saved<Suite>[]
  readonly soak: Saved<Soak> | undefined
  readonly profile: Saved<Profile> | undefined
  readonly comparisons: readonly Saved<Compared>[]
}

/** Kinds by priority: a full run has priority over a newer quick run. */
const KINDS = ['full', 'quick', 'soak', 'profile'] as const
const DATED = /^\d{4}-\d\d-\d\d-/
const COMPARISON = /^\d{4}-\d\d-\d\d-compare[\w-]*\.json$/

/** Names of runs of single scenarios, or of one runtime. */
const SINGLE =
  /^\d{4}-\d\d-\d\d-(?!(?:compare[\w-]*|profile[\w-]*|record[\w-]*|soak[\w-]*|full|quick)\.json)[a-z+-]+\.json$/

/**
 * Reads results. From a folder: the newest file of each kind, all comparisons, and runs of single
 * scenarios that are newer than the suite and as thorough. From a file: only that file. Throws an
 * `Error` of one line if there are no results or other content.
 */
export function readResults(from: string): Results {
  if (!existsSync(from)) throw new Error(`${from} does not exist`)
  const paths = statSync(from).isDirectory() ? newestOf(from) : [from]
  if (paths.length === 0) throw new Error(`no results in ${from}`)
  const saved = paths.map(read)
  const [suite, ...single] = saved.filter((one) => isOf(one, 'suite'))
  // The names of files of one day are not in the order of their runs.
  const again = single
    .filter(({ result }) => isLater(result, suite?.result))
    .sort((one, another) => one.result.date.localeCompare(another.result.date))
  return {
    suite: suite && again.reduce(withAgain, withRevision(suite)),
    again,
    soak: only(saved, 'soak'),
    profile: only(saved, 'profile'),
    comparisons: saved.flatMap((one) => (isOf(one, 'compare') ? [one] : [])),
  }
}

function newestOf(folder: string): readonly string[] {
  const names = readdirSync(folder).sort().reverse()
  const [full, quick, ...others] = KINDS.map((kind) =>
    names.find((name) => DATED.test(name) && name.slice('yyyy-mm-dd-'.length) === `${kind}.json`),
  )
  const single = names.filter((name) => SINGLE.test(name)).reverse()
  const comparisons = names.filter((name) => COMPARISON.test(name)).reverse()
  return [full ?? quick, ...others, ...single, ...comparisons]
    .filter((name) => name !== undefined)
    .map((name) => join(folder, name))
}

const isLater = (one: Suite, suite: Suite | undefined): boolean =>
  suite !== undefined && one.effort === suite.effort && one.date > suite.date

/** Returns `suite` with its revision in the notes of each scenario. */
function withRevision({ path, result }: Saved<Suite>): Saved<Suite> {
  const note = `Measured at revision ${result.commit.id}: ${basename(path)}.`
  const measured = result.measured.map((one) => withNote(one, note))
  return { path, result: { ...result, measured } }
}

const withNote = (one: Suite['measured'][number], note: string): Suite['measured'][number] => ({
  ...one,
  notes: [note, ...(one.notes ?? [])],
})

/** Returns `suite` with the results and failures of a later run in place of its own. */
function withAgain(suite: Saved<Suite>, { path, result }: Saved<Suite>): Saved<Suite> {
  const keyOf = (one: { readonly scenario: string; readonly runtime: string }) =>
    `${one.scenario} ${one.runtime}`
  const keys = new Set([...result.measured, ...result.failed].map(keyOf))
  const note = `Measured again, later than the rest, at revision ${result.commit.id}: ${basename(path)}.`
  const newer = new Map(result.measured.map((one) => [keyOf(one), withNote(one, note)]))
  const known = new Set(suite.result.measured.map(keyOf))
  const measured = [
    ...suite.result.measured
      .filter((one) => newer.has(keyOf(one)) || !keys.has(keyOf(one)))
      .map((one) => newer.get(keyOf(one)) ?? one),
    ...[...newer].filter(([key]) => !known.has(key)).map(([, one]) => one),
  ]
  const failed = [...suite.result.failed.filter((one) => !keys.has(keyOf(one))), ...result.failed]
  return { ...suite, result: { ...suite.result, measured, failed } }
}

function read(path: string): Saved<Result> {
  const parsed = resultSchema.safeParse(parse(path))
  if (!parsed.success) {
    const [line = ''] = z
      .prettifyError(parsed.error)
      .replace(/\n\s+→/, '')
      .split('\n')
    throw new Error(`${basename(path)} is not a results file: ${line.replace(/^✖ /, '')}`)
  }
  return { path, result: parsed.data }
}

function parse(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    throw new Error(`${basename(path)} is not JSON`)
  }
}

type Named<Name extends Result['benchmark']> = Saved<Extract<Result, { benchmark: Name }>>

function isOf<Name extends Result['benchmark']>(
  saved: Saved<Result>,
  name: Name,
): saved is Named<Name> {
  return saved.result.benchmark === name
}

function only<Name extends Result['benchmark']>(
  saved: readonly Saved<Result>[],
  name: Name,
): Named<Name> | undefined {
  return saved.find((one) => isOf(one, name)) as Named<Name> | undefined
}
