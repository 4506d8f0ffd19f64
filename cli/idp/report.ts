/** Prints what `portcullis idp doctor` found. The first line names the mistake. */
import { byUrgency } from '../doctor/finding.ts'
import { REFUSED } from '../failure.ts'
import { createOutput } from '../output.ts'
import { counted, table, visible, visibleJson } from '../text.ts'
import type { Check } from './check.ts'
import type { Suggestion } from './proposed-entry.ts'

const COLUMNS = ['level', 'check', 'seen', 'expected']

export interface ReportOptions {
  readonly json?: boolean
  readonly wide?: boolean
  /** Whether checks that passed are shown. */
  readonly all?: boolean
}

/** Prints the checks and sets the exit code to 1 if one failed. `ok` is the first line if none did. */
export function report(
  found: readonly Check[],
  suggestion: Suggestion | undefined,
  ok: string,
  { json = false, wide = false, all = false }: ReportOptions,
): void {
  const checks = byUrgency(found)
  const findings = checks.filter(({ mistake }) => mistake !== undefined)
  const errors = checks.filter(({ level }) => level === 'error').length
  const [first] = findings
  const isOk = errors === 0
  const title = first === undefined || isOk ? ok : titleOf(first)
  const answer = {
    ok: isOk,
    mistake: isOk ? null : title,
    checks: checks.map(({ change: _change, condition: _condition, ...check }) => check),
    suggestion: suggestion ?? null,
  }
  const output = createOutput(json, wide)
  const shown = all ? checks : checks.filter(({ level }) => level !== 'ok')
  const fine = checks.length - shown.length
  const { red, green, bold } = output.style.colors
  const lines = [
    isOk ? green(title) : red(title),
    ...(shown.length === 0 ? [] : ['', table(shown, COLUMNS, output.style)]),
    ...(fine === 0 ? [] : ['', `${counted(fine, 'check')} passed; --all shows them.`]),
    ...findings.flatMap((check) => ['', `${bold(titleOf(check))}.`, `  ${check.remedy}`]),
    ...(suggestion === undefined ? [] : ['', ...suggested(suggestion)]),
  ]
  output.result(answer, lines.join('\n'))
  const warnings = findings.length - errors
  output.remark(`${counted(errors, 'error')}, ${counted(warnings, 'warning')}.`)
  if (!isOk) process.exitCode = REFUSED
}

const titleOf = ({ check, mistake }: Check): string => visible(`${check}: ${mistake}`)

const VERDICTS = {
  accepted: 'The verifier of the gateway accepts the token with it.',
  'not tried':
    'It was not tried: the keys of the issuer were not fetched, so all claims may be forged.',
}

function suggested({ index, fields, verdict, notes }: Suggestion): readonly string[] {
  const what = index === undefined ? 'Entry of ISSUERS:' : `Set in ISSUERS[${index}]:`
  const lines = [what, `  ${visibleJson(fields)}`]
  if (verdict === 'accepted' || verdict === 'not tried') lines.push(VERDICTS[verdict])
  else if (verdict !== undefined) lines.push(`With it, the token is still ${verdict}.`)
  return [...lines, ...notes.map((note) => `  - ${visible(note)}`)]
}
