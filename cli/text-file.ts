/** Files that people write. */
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { usage } from './failure.ts'

/** An assignment: name, white space, and a value in quotes with what follows it, or one without quotes. */
const ASSIGNMENT =
  /^[ \t]*(?:export[ \t]+)?([^\s=#]+)[ \t]*=([ \t]*)(?:(["'`])[\s\S]*?\3([^\r\n]*)|([^\r\n]*))/gm
/** A comment behind a value in quotes, or nothing. */
const COMMENT = /^\s*(?:#|$)/

/** Returns the text without the byte order mark that editors of Windows write. Throws if it cannot be read. */
export const readText = (file: string): string => readFileSync(file, 'utf8').replace(/^\ufeff/, '')

/**
 * Returns the variables of a file. With a byte order mark, its first name would be another one. Throws a usage failure
 * for a value of which the parser would drop the end. Lines that are no assignments are ignored.
 */
export function readVariables(file: string): NodeJS.Dict<string> {
  const text = readText(file)
  for (const [, name, space = '', quote, behind = '', plain = ''] of text.matchAll(ASSIGNMENT)) {
    const isCut =
      quote === undefined
        ? /\S#/.test(plain) || (!space && plain[0] === '#')
        : !COMMENT.test(behind)
    if (isCut) throw usage(`${file}: ${name}: ${quote === undefined ? IN_PLAIN : BEHIND_QUOTE}`)
  }
  return parseEnv(text)
}

const IN_PLAIN =
  "the value has a # without quotes, where it would end; write NAME='value', or a space before a comment"
const BEHIND_QUOTE =
  'text follows the closing quote, where the value would end; use quotes that the value does not contain'
