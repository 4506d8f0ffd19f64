/** Where results, remarks and failures go. */
import type { Failure } from './failure.ts'
import { duration, record, table, visible, visibleJson } from './text.ts'

/** Results go to stdout, everything else to stderr. */
export interface Output {
  /** The answer itself for a machine, `text` for a person. */
  result(answer: unknown, text: string): void
  /** One thing: its members. */
  thing(answer: object): void
  /**
   * A page of a list: `rows` of `answer`, which are `what`, and how to get the next one. `orElse` is
   * what a person should know where there are none.
   */
  list(
    answer: { readonly cursor?: string },
    rows: readonly object[],
    columns: readonly string[],
    what: string,
    orElse?: string,
  ): void
  /** Something for a person to know; nothing for a machine. */
  remark(text: string): void
}

export function createOutput(json: boolean): Output {
  function result(answer: unknown, text: string): void {
    process.stdout.write(`${json ? visibleJson(answer) : text}\n`)
  }
  function remark(text: string): void {
    if (!json) process.stderr.write(`${visible(text)}\n`)
  }
  return {
    result,
    remark,
    thing: (answer) => result(answer, record(answer)),
    list(answer, rows, columns, what, orElse) {
      if (json || rows.length > 0) result(answer, table(rows, columns))
      else remark([`There are no ${what}.`, orElse].filter(Boolean).join(' '))
      if (answer.cursor !== undefined) remark(`There are more: --cursor ${answer.cursor}`)
    },
  }
}

const WAY_OUT_OF_BAN =
  'a ban is lifted by `portcullis bans delete` from elsewhere, or by hand: docs/storage-schema.md'

/** What to do about a failure, where a code alone leaves people puzzled. */
const HINTS: ReadonlyMap<string, string> = new Map([
  ['gateway_unreachable', 'another gateway: --url, or PORTCULLIS_URL'],
  [
    'invalid_client',
    'PORTCULLIS_CLIENT_ID with PORTCULLIS_CLIENT_SECRET is no client of this gateway',
  ],
  ['banned', WAY_OUT_OF_BAN],
  ['access_denied', WAY_OUT_OF_BAN],
  ['insufficient_permission', "the policy gives it to a role: operator: ['portcullis:*']"],
])

/** Says on stderr why a command failed: `{"error":{code,detail,requestId}}` for a machine. */
export function tell(failure: Failure, json: boolean): void {
  const { code, message: detail, requestId, findings, retryAfterSeconds } = failure
  if (json) {
    const more = {
      ...(findings.length > 0 && { errors: findings }),
      ...(retryAfterSeconds !== null && { retryAfterSeconds }),
    }
    process.stderr.write(`${visibleJson({ error: { code, detail, requestId, ...more } })}\n`)
    return
  }
  const lines = [
    code === 'usage' ? detail : `${code}: ${detail}`,
    ...[HINTS.get(code)].flatMap((hint) => (hint === undefined ? [] : [`  ${hint}`])),
    ...findings.map((finding) => `  ${finding.in}${finding.path}: ${finding.message}`),
    ...(retryAfterSeconds === null ? [] : [`  try again in ${duration(retryAfterSeconds)}`]),
    ...(requestId === null ? [] : [`  request ${requestId}`]),
  ]
  process.stderr.write(`portcullis: ${lines.map(visible).join('\n')}\n`)
}
