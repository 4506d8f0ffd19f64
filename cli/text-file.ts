/** Files that people write. */
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'

/** Returns the text without the byte order mark that editors of Windows write. Throws if it cannot be read. */
export const readText = (file: string): string => readFileSync(file, 'utf8').replace(/^\ufeff/, '')

/** Returns the variables of a file. With a byte order mark, its first name would be another one. */
export const readVariables = (file: string): NodeJS.Dict<string> => parseEnv(readText(file))
