/** Writes results, remarks and failures. */
import type { Failure } from './failure.ts'
import { styleFor } from './terminal.ts'
import { duration, record, type Style, table, visible, visibleJson } from './text.ts'

/** Results go to stdout, everything else to stderr. */
export interface Output {
  /** The style of texts for {@link result}. */
  readonly style: Style
  /** Writes `answer` with `--json`, and `text` otherwise. */
  result(answer: unknown, text: string): void
  /** Writes the members of one object. */
  thing(answer: object): void
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
  ): void
  /** Writes a remark for people. Does nothing with `--json`. */
  remark(text: string): void
}

export function createOutput(json: boolean): Output {
  const style = styleFor(process.stdout)
  const { dim } = styleFor(process.stderr).colors
  function result(answer: unknown, text: string): void {
    process.stdout.write(`${json ? visibleJson(answer) : text}\n`)
  }
  function remark(text: string): void {
    if (!json) process.stderr.write(`${dim(visible(text))}\n`)
  }
  return {
    style,
    result,
    remark,
    thing: (answer) => result(answer, record(answer, style)),
    list(answer, rows, columns, what, orElse) {
      if (json || rows.length > 0) result(answer, table(rows, columns, style))
      else remark([`No ${what}.`, orElse].filter(Boolean).join(' '))
      if (answer.cursor !== undefined) remark(`More entries: --cursor ${answer.cursor}`)
    },
  }
}

const WAY_OUT_OF_BAN =
  'lift the ban with `portcullis bans delete` from another address, or by hand: docs/storage-schema.md'

/** Suggested actions for failures that the code alone does not explain. */
const HINTS: ReadonlyMap<string, string> = new Map([
  ['gateway_unreachable', 'another gateway: --url, or PORTCULLIS_URL'],
  [
    'invalid_client',
    'PORTCULLIS_CLIENT_ID with PORTCULLIS_CLIENT_SECRET is not a client of this gateway',
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
