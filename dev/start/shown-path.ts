/** Paths of files for people. */
import { relative } from 'node:path'

/** Returns the path from the folder of the project, or the absolute one of a file elsewhere. */
export function shownPath(root: string, file: string): string {
  const path = relative(root, file)
  return path.startsWith('..') ? file : path
}
