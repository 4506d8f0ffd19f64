/** `portcullis policy check`: mistakes and lints of a policy, with their places. */

import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { type Policy, requirePolicy } from '../../src/policy/policy.ts'
import { type Mistake, mistakeAt } from '../../src/problems/mistake.ts'
import { BOTH_HAVE_ISSUERS, withIssuersOf } from '../../src/validators/environment.ts'
import { mistakesOf, REFUSED, usage } from '../failure.ts'
import { createOutput } from '../output.ts'
import { loadRunTimes } from '../patterns/run-time.ts'
import { requireProject } from '../project.ts'
import { counted, type Style, visible } from '../text.ts'
import type { Finding, PlacedFinding, Severity } from './finding.ts'
import { nearText } from './invalid.ts'
import { lint, RULES } from './lints.ts'
import { loadPolicy, policyFile } from './load.ts'
import { findingsOf } from './mistakes.ts'
import { patternsOf } from './route-patterns.ts'
import { sarifOf } from './sarif.ts'
import { readSource, type Source } from './source.ts'

export interface CheckOptions {
  readonly json?: boolean
  readonly sarif?: boolean
  readonly ignore?: readonly string[]
  readonly maxWarnings?: number
  readonly strict?: boolean
}

/** The rules whose findings are errors with `--strict`: no caller passes what they find. */
const STRICT: readonly string[] = ['ungranted-permission']

const strictly = (finding: PlacedFinding): PlacedFinding =>
  STRICT.includes(finding.rule) ? { ...finding, severity: 'error' } : finding

interface Checked {
  readonly findings: readonly PlacedFinding[]
  /** How many findings comments and options silence. */
  readonly silenced: number
}

/** Checks the policy, prints the findings, and sets the exit code to 1 if there are too many. */
export async function checkPolicy(
  named: string | undefined,
  {
    json = false,
    sarif = false,
    ignore = [],
    maxWarnings = Number.POSITIVE_INFINITY,
    strict = false,
  }: CheckOptions,
  folder: string,
): Promise<void> {
  const root = requireProject(folder)
  const file = policyFile(named, '[file]', folder, root)
  const unknown = ignore.find((rule) => !Object.hasOwn(RULES, rule))
  if (unknown !== undefined)
    throw usage(`--ignore: unknown rule ${unknown}; the rules are ${Object.keys(RULES).join(', ')}`)
  const { findings: found, silenced } = await examine(file, root, ignore)
  const findings = strict ? found.map(strictly) : found
  const count = (severity: Severity) => findings.filter((one) => one.severity === severity).length
  const [errors, warnings] = [count('error'), count('warning')]
  const isOk = errors === 0 && warnings <= maxWarnings
  const output = createOutput(json || sarif)
  const answer = { file: relative(folder, file), ok: isOk, silenced, findings: findings.map(shown) }
  const lines = findings.map((finding) => lineOf(finding, folder, output.style))
  const summary = `${answer.file}: ${counted(errors, 'error')}, ${counted(warnings, 'warning')}, ${count('info')} info, ${silenced} silenced`
  output.result(sarif ? sarifOf(findings, root) : answer, [...lines, summary].join('\n'))
  if (warnings > maxWarnings && errors === 0)
    output.remark(`More warnings than --max-warnings ${maxWarnings} allows.`)
  if (!isOk) process.exitCode = REFUSED

  function shown({ place, ...finding }: PlacedFinding) {
    // Other findings have the name of their rule as the code.
    return {
      code: finding.rule,
      ...finding,
      place: { ...place, file: relative(folder, place.file) },
    }
  }
}

/**
 * Returns the findings about the policy in `file`: its mistakes, or the findings of all rules if it has
 * none. `root` is the folder of the project.
 */
export async function examine(
  file: string,
  root: string,
  ignore: readonly string[] = [],
): Promise<Checked> {
  const loaded = await mistakesOrPolicy(file, root)
  if ('mistakes' in loaded) {
    return { findings: placed(findingsOf(loaded.mistakes), readSource(file)), silenced: 0 }
  }
  const source = readSource(file, loaded.routes.length)
  // Most policies have no patterns, and need no checker.
  const hasPatterns = loaded.routes.some((route) => !patternsOf(route).next().done)
  const runTimes = hasPatterns ? await loadRunTimes() : undefined
  const all = placed(lint(loaded, withIssuersOf(loaded, process.env), runTimes), source, loaded)
  const ignores = new Map<string, ReturnType<typeof ignoresIn>>()
  const findings = all.filter(({ rule, path, place }) => {
    const row = source.placeOf({ path: path.slice(0, 2), route: routeAt(loaded, path) })
    const isSilenced = [place, ...(row.isExact ? [row] : [])].some(({ file, line }) => {
      const known = ignores.get(file) ?? ignoresIn(file)
      ignores.set(file, known)
      return known.get(line)?.includes(rule)
    })
    return !isSilenced && !ignore.includes(rule)
  })
  return { findings, silenced: all.length - findings.length }
}

async function mistakesOrPolicy(
  file: string,
  root: string,
): Promise<Policy | { readonly mistakes: readonly Mistake[] }> {
  try {
    const policy = await loadPolicy(file, root)
    requirePolicy(policy)
    if (policy.issuers !== undefined && process.env.ISSUERS !== undefined)
      return { mistakes: [mistakeAt('conflict', ['issuers'], `ISSUERS ${BOTH_HAVE_ISSUERS}`)] }
    return policy
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'Misconfigured') throw error
    return { mistakes: mistakesOf(error) }
  }
}

function placed(findings: readonly Finding[], source: Source, policy?: Policy): PlacedFinding[] {
  return findings.map((finding) => {
    const route = policy === undefined ? finding.route : routeAt(policy, finding.path)
    return { ...finding, place: source.placeOf({ path: finding.path, route }) }
  })
}

function routeAt({ routes }: Policy, [field, index]: Finding['path']) {
  return field === 'routes' && typeof index === 'number' ? routes[index] : undefined
}

const PAINTS = { error: 'red', warning: 'yellow', info: 'cyan' } as const

function lineOf(finding: PlacedFinding, folder: string, { colors }: Style): string {
  const { severity, rule, message, suggestion, place } = finding
  const at = `${relative(folder, place.file)}:${place.line}:${place.column}`
  const remedy = suggestion === undefined ? '' : `\n    ${visible(suggestion)}`
  const label = colors[PAINTS[severity]](severity)
  return `${colors.bold(visible(at))} ${label} ${rule}${nearText(place.isExact)}\n    ${visible(message)}${remedy}`
}

const COMMENT = /(?:\/\/|\/\*|^\s*\*)\s*portcullis-ignore ([a-z-]+(?:, ?[a-z-]+)*)/
const IS_ONLY_COMMENT = /^\s*(?:\/\/|\/\*|\*)/

/** Returns the rules that comments silence, by the number of the line, from 1. */
export function ignoresIn(file: string): ReadonlyMap<number, readonly string[]> {
  const ignores = new Map<number, readonly string[]>()
  let waiting: readonly string[] = []
  for (const [index, line] of readFileSync(file, 'utf8').split('\n').entries()) {
    const rules = COMMENT.exec(line)?.[1]?.split(/, ?/) ?? []
    waiting = [...waiting, ...rules]
    // A comment on its own line is about the next line with code.
    if (IS_ONLY_COMMENT.test(line) || line.trim() === '') continue
    if (waiting.length > 0) ignores.set(index + 1, waiting)
    waiting = []
  }
  return ignores
}
