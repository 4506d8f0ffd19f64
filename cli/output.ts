/** Writes results, remarks and failures. */

import { compactTable } from './compact.ts'
import type { Failure } from './failure.ts'
import { styleFor } from './terminal.ts'
import { duration, record, table, visible, visibleJson } from './text.ts'

/** Results go to stdout, everything else to stderr. */
export type Output = ReturnType<typeof createOutput>

/** `wide`: tables have every column, and are not fitted to the terminal. */
export function createOutput(json: boolean, wide = false) {
  const own = styleFor(process.stdout)
  const style = wide ? { ...own, width: Number.POSITIVE_INFINITY } : own
  const { dim } = styleFor(process.stderr).colors
  function result(answer: unknown, text: string): void {
    process.stdout.write(`${json ? visibleJson(answer) : text}\n`)
  }
  function remark(text: string): void {
    if (!json) process.stderr.write(`${dim(visible(text))}\n`)
  }
  function listed(rows: readonly object[], columns: readonly string[], what: string): string {
    if (!Number.isFinite(style.width)) return table(rows, columns, style)
    return `${rows.length} ${what}\n${fitted(rows, columns)}`
  }
  function fitted(rows: readonly object[], columns: readonly string[]): string {
    if (json || !Number.isFinite(style.width)) return table(rows, columns, style)
    const { text, hidden } = compactTable(rows, columns, style)
    if (hidden.length > 0) remark(`Not shown: ${hidden.join(', ')}. --wide shows every column.`)
    return text
  }
  return {
    /** The style of texts for {@link result}. */
    style,
    /** Writes `answer` with `--json`, and `text` otherwise. */
    result,
    /** Writes a remark for people. Does nothing with `--json`. */
    remark,
    /** Formats rows for the terminal; every column in a file or a pipe. See `compact.ts`. */
    fitted,
    /** Writes the members of one object. */
    thing: (answer: object): void => result(answer, record(answer, style)),
    /** Writes the members of one object, of which `secret` is shown once: first, and followed by a remark. */
    once(answer: object, secret: string): void {
      const { [secret]: value, ...rest } = answer as Readonly<Record<string, unknown>>
      const { bold, green } = style.colors
      const first = `${bold(secret)}  ${bold(green(visible(String(value))))}`
      result(
        answer,
        value === undefined ? record(rest, style) : `${first}\n\n${record(rest, style)}`,
      )
      if (value !== undefined) remark(`Copy ${secret} now: it is shown once and not stored.`)
    },
    /**
     * Writes one page of a list and how to get the next one. `rows` are the items of `answer`, and
     * `what` names them in the plural. `orElse` is an additional remark for an empty list.
     */
    list(
      answer: { readonly cursor?: string },
      rows: readonly object[],
      columns: readonly string[],
      what: string,
      orElse?: string,
    ): void {
      if (json || rows.length > 0) result(answer, json ? '' : listed(rows, columns, what))
      else remark([`No ${what}.`, orElse].filter(Boolean).join(' '))
      if (answer.cursor !== undefined) remark(`More entries: --cursor ${answer.cursor}`)
    },
  }
}

const WAY_OUT_OF_BAN =
  'lift the ban with `portcullis bans delete` from another address, or by hand: docs/storage-schema.md'

/** Suggested actions for failures that the code alone does not explain. */
const HINTS: ReadonlyMap<string, string> = new Map([
  [
    'gateway_unreachable',
    'start it, for example with `portcullis dev`, or correct its address and port: --url, or PORTCULLIS_URL',
  ],
  [
    'invalid_client',
    'PORTCULLIS_CLIENT_ID with PORTCULLIS_CLIENT_SECRET is not a client of this gateway',
  ],
  [
    'invalid_token',
    'see which credentials commands use: `portcullis whoami`; log in again: `portcullis login`',
  ],
  ['banned', WAY_OUT_OF_BAN],
  ['access_denied', WAY_OUT_OF_BAN],
  [
    'insufficient_permission',
    "grant the permission to a role in the policy: operator: ['portcullis:*']",
  ],
])

/**
 * Writes a failure to stderr. With `--json`: `{"error":{code,detail,requestId}}`, and `errors` and
 * `retryAfterSeconds` if present.
 */
export function printFailure(failure: Failure, json: boolean): void {
  const { code, message: detail, requestId, findings, retryAfterSeconds } = failure
  if (json) {
    const more = {
      ...(findings.length > 0 && { errors: findings }),
      ...(retryAfterSeconds !== null && { retryAfterSeconds }),
    }
    process.stderr.write(`${visibleJson({ error: { code, detail, requestId, ...more } })}\n`)
    return
  }
  const { red } = styleFor(process.stderr).colors
  const lines = [
    code === 'usage' ? detail : `${code}: ${detail}`,
    ...[HINTS.get(code)].flatMap((hint) => (hint === undefined ? [] : [`  ${hint}`])),
    ...findings.map(({ in: part, path, message }) =>
      part + path === '' ? `  - ${message}` : `  ${part}${path}: ${message}`,
    ),
    ...(retryAfterSeconds === null ? [] : [`  try again in ${duration(retryAfterSeconds)}`]),
    ...(requestId === null ? [] : [`  request ${requestId}`]),
  ]
  process.stderr.write(`${red('portcullis:')} ${lines.map(visible).join('\n')}\n`)
}
