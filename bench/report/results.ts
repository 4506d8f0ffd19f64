/** Which files of results the report is made of, and what is in them. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import * as z from 'zod'
import {
  type Compared,
  type Profile,
  type Result,
  resultSchema,
  type Soak,
  type Suite,
} from './schema.ts'

/** A file of results, read. */
export interface Saved<Of> {
  /** Its whole path. */
  readonly path: string
  readonly result: Of
  /** The whole path of the picture beside it, if there is one. */
  readonly picture: string | undefined
}

/** What there is to report; never nothing. */
export interface Results {
  readonly suite: Saved<Suite> | undefined
  readonly soak: Saved<Soak> | undefined
  readonly profile: Saved<Profile> | undefined
  readonly comparisons: readonly Saved<Compared>[]
}

/** By rank: a full run says more than a quick one that is newer. */
const KINDS = ['full', 'quick', 'soak', 'profile'] as const
const DATED = /^\d{4}-\d\d-\d\d-/
const COMPARISON = /^\d{4}-\d\d-\d\d-compare[\w-]*\.json$/

/**
 * Of a folder the newest file of each kind, and every comparison; of a file that file alone. Throws
 * an `Error` of one line where there is nothing, or something else.
 */
export function readResults(from: string): Results {
  if (!existsSync(from)) throw new Error(`there is no ${from}`)
  const paths = statSync(from).isDirectory() ? newestOf(from) : [from]
  if (paths.length === 0) throw new Error(`there are no results in ${from}`)
  const saved = paths.map(read)
  return {
    suite: only(saved, 'suite'),
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
  const comparisons = names.filter((name) => COMPARISON.test(name)).reverse()
  return [full ?? quick, ...others, ...comparisons]
    .filter((name) => name !== undefined)
    .map((name) => join(folder, name))
}

function read(path: string): Saved<Result> {
  const parsed = resultSchema.safeParse(parse(path))
  if (!parsed.success) {
    const [line = ''] = z
      .prettifyError(parsed.error)
      .replace(/\n\s+→/, '')
      .split('\n')
    throw new Error(`${basename(path)} is not a file of results: ${line.replace(/^✖ /, '')}`)
  }
  const picture = join(dirname(path), `${basename(path, '.json')}.svg`)
  return { path, result: parsed.data, picture: existsSync(picture) ? picture : undefined }
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
