/** Prints the messages of a reload of the policy for people. */
import type { Log } from '../../cli/server-log.ts'
import { visible } from '../../cli/text.ts'
import { shownPath } from './shown-path.ts'

/** Returns a log that prints a message with its place and suggestion, and what has changed. */
export const createLogForPeople =
  (root: string, print: (text: string) => void): Log =>
  (_level, message, fields = {}) => {
    const { file, line, column, suggestion, changes = [] } = fields
    const place = file === undefined ? '' : `${shownPath(root, String(file))}:${line}:${column}: `
    const text = `${place}${message}${suggestion === undefined ? '' : `; ${suggestion}`}`
    for (const part of text.split('\n')) print(visible(part))
    for (const change of changes as readonly string[]) print(visible(`  ${change}`))
  }
