/** Describes when and how a soak was run. */
import { join } from 'node:path'
import { surroundings } from '../surroundings.ts'

const RESULTS = join(import.meta.dirname, '..', 'results')

export function aboutSoak(argv: readonly string[], redis: string) {
  const about = surroundings(argv, redis)
  const command = ['npm run soak', ...(argv.length > 0 ? ['--', ...argv] : [])].join(' ')
  return { ...about, command }
}

/** `bench/results/<date>-soak.json`. */
export const defaultFile = (date: string): string =>
  join(RESULTS, `${date.slice(0, 'yyyy-mm-dd'.length)}-soak.json`)
