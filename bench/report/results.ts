/** Selects and reads the results files of the report. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import * as z from 'zod'
import {
  type Compared,
  type Measured,
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

/** The newest result of a scenario under a runtime, and the run that measured it. */
export interface Run {
  readonly measured: Measured
  readonly saved: Saved<Suite>
}

/** All results of a report. */
export interface Results {
  readonly runs: readonly Run[]
  /** Scenarios that failed, and were not measured since. */
  readonly failed: readonly Suite['failed'][number][]
  /** The newest of each runtime. */
  readonly soaks: readonly Saved<Soak>[]
  readonly profiles: readonly Saved<Profile>[]
  readonly comparisons: readonly Saved<Compared>[]
}

const DATED = /^\d{4}-\d\d-\d\d-(.+)\.json$/
/** Written by `npm run record`, which the report does not read. */
const RECORD = /^record/

/**
 * Reads the results of a folder. Throws an `Error` of one line if there are none, or if a file has
 * other content.
 */
export function readResults(folder: string): Results {
  if (!existsSync(folder)) throw new Error(`${folder} does not exist`)
  const saved = readdirSync(folder)
    .sort()
    .filter((name) => DATED.test(name) && !RECORD.test(kindOf(name)))
    .map((name) => read(join(folder, name)))
    // The names of files of one day are not in the order of their runs.
    .sort((one, other) => one.result.date.localeCompare(other.result.date))
  if (saved.length === 0) throw new Error(`no results in ${folder}`)
  const suites = saved.filter((one) => isOf(one, 'suite'))
  const runs = new Map<string, Run>()
  const failed = new Map<string, Suite['failed'][number]>()
  for (const suite of suites) {
    for (const one of suite.result.failed) if (isFull(suite)) failed.set(keyOf(one), one)
    for (const measured of suite.result.measured) {
      const key = keyOf(measured)
      const known = runs.get(key)
      // A quick run does not replace a full one.
      if (known !== undefined && isFull(known.saved) && !isFull(suite)) continue
      runs.set(key, { measured, saved: suite })
      failed.delete(key)
    }
  }
  return {
    runs: [...runs.values()],
    failed: [...failed.values()],
    soaks: newestByKind(saved.filter((one) => isOf(one, 'soak'))),
    profiles: newestByKind(saved.filter(isProfile)),
    comparisons: saved.filter((one) => isOf(one, 'compare')),
  }
}

const isFull = ({ result }: Saved<Suite>): boolean => result.effort === 'full'

const keyOf = (one: { readonly scenario: string; readonly runtime: string }): string =>
  `${one.scenario} ${one.runtime}`

const kindOf = (path: string): string => DATED.exec(basename(path))?.[1] ?? ''

/** `saved` is sorted by date. */
const newestByKind = <Of>(saved: readonly Saved<Of>[]): readonly Saved<Of>[] => [
  ...new Map(saved.map((one) => [kindOf(one.path), one])).values(),
]

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

function isOf<Name extends Result['benchmark']>(
  saved: Saved<Result>,
  name: Name,
): saved is Saved<Extract<Result, { benchmark: Name }>> {
  return saved.result.benchmark === name
}

const isProfile = (saved: Saved<Result>): saved is Saved<Profile> =>
  saved.result.benchmark.startsWith('profile')
