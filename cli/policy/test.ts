/** `portcullis policy test`: runs the tables of requests and expected decisions of a project. */
import { relative } from 'node:path'
import type {
  PolicyTestError,
  PolicyTestFailure,
  PolicyTestReport,
  PolicyTestTable,
} from '../../src/testing/index.ts'
import { REFUSED, USAGE, usage } from '../failure.ts'
import { createOutput } from '../output.ts'
import { requireProject } from '../project.ts'
import { counted, type Style, table, visible } from '../text.ts'
import { type Coverage, coverageOf, type Reached } from './coverage.ts'
import { invalidPolicy } from './invalid.ts'
import { projectModule } from './load.ts'
import { type Place, readTable } from './source.ts'
import { loadTable, testFiles } from './test-files.ts'

export interface TestOptions {
  readonly json?: boolean
  readonly coverage?: boolean
  readonly minCoverage?: number
}

interface TestingModule {
  policyTest(table: PolicyTestTable): Promise<PolicyTestReport>
}

interface TestedFile {
  readonly file: string
  readonly policy: unknown
  readonly report: PolicyTestReport
  readonly failures: readonly PolicyTestFailure[]
}

/**
 * Runs the tables of all files, and prints each row with another decision than the expected one. Sets the exit
 * code to 1 if there is such a row, or if less than `minCoverage` percent of the routes or roles are
 * tested.
 */
export async function testPolicies(
  named: readonly string[],
  { json = false, coverage: isListed = false, minCoverage = 0 }: TestOptions,
  folder: string,
): Promise<void> {
  if (minCoverage > 100) throw usage('--min-coverage must be a percentage, 0 to 100')
  const root = requireProject(folder)
  const files = testFiles(named, folder)
  const testing = await projectModule<TestingModule>('testing', root)
  const output = createOutput(json)
  const tested: TestedFile[] = []
  for (const file of files) {
    const one = await testFile(file, root, testing)
    tested.push(one)
    output.remark(`${relative(folder, file)}: ${summaryOf([one])}`)
  }
  const coverage = coverageOf(tested)
  const failures = tested.flatMap(({ file, failures }) => {
    if (failures.length === 0) return []
    const source = readTable(file)
    return failures.map((failure) => {
      const place = source.placeOf({ path: ['rows', failure.index] })
      return { failure, place: { ...place, file: relative(folder, place.file) } }
    })
  })
  const isCovered = [coverage.routes, coverage.roles].every(({ percent }) => percent >= minCoverage)
  const isOk = failures.length === 0 && isCovered
  const lines = [
    ...failures.map((one) => failureText(one, output.style)),
    ...(isListed ? [coverageTables(coverage, output.style)] : []),
    `${summaryOf(tested)}, in ${counted(files.length, 'file')}`,
    reachedText('routes', coverage.routes),
    reachedText('roles', coverage.roles),
  ]
  const answer = {
    ok: isOk,
    files: tested.map(({ file, report, failures }) => ({
      file: relative(folder, file),
      rows: report.rows,
      failed: failures.length,
    })),
    failures: failures.map(({ failure, place }) => ({ place, ...failureAnswer(failure) })),
    coverage,
  }
  output.result(answer, lines.join('\n'))
  if (!isCovered)
    output.remark(`Less than --min-coverage ${minCoverage} % of the routes or roles are tested.`)
  if (!isOk) process.exitCode = REFUSED
}

async function testFile(
  file: string,
  root: string,
  { policyTest }: TestingModule,
): Promise<TestedFile> {
  const table = await loadTable(file, root)
  const { policy } = table
  try {
    return { file, policy, report: await policyTest(table), failures: [] }
  } catch (error) {
    if (error instanceof TypeError) throw usage(`${file}: ${error.message}`)
    if (error instanceof Error && error.name === 'Misconfigured')
      throw invalidPolicy(USAGE, file, error)
    // The class is that of the project's own package.
    const { name, report, failures } = error as PolicyTestError
    if (name === 'PolicyTestError') return { file, policy, report, failures }
    throw error
  }
}

function summaryOf(tested: readonly TestedFile[]): string {
  const rows = tested.reduce((sum, { report }) => sum + report.rows, 0)
  const failed = tested.reduce((sum, { failures }) => sum + failures.length, 0)
  return `${counted(rows, 'row')}, ${failed} failed`
}

const reachedText = (what: string, { tested, total, percent, untested }: Reached): string =>
  `${tested} of ${total} ${what} tested (${percent} %)` +
  (untested.length === 0 ? '' : `; not tested: ${untested.map(visible).join(', ')}`)

const COUNTS = ['allowed', 'refused'] as const

function coverageTables({ counts: { routes, roles } }: Coverage, style: Style): string {
  const tables = [
    table(routes, ['route', ...COUNTS], style),
    ...(roles.length === 0 ? [] : [table(roles, ['role', ...COUNTS], style)]),
  ]
  return tables.map((text) => `${text}\n`).join('\n')
}

function failureText(
  { failure, place }: { readonly failure: PolicyTestFailure; readonly place: Place },
  { colors }: Style,
): string {
  const [what = '', ...why] = failure.text.split('\n')
  const [row, decisions] = what.split(/: (?=expected )/)
  const at = visible(`${place.file}:${place.line}:${place.column}`)
  const lines = [decisions ?? '', ...why].map((text) => `    ${visible(text.trim())}`)
  return [`${colors.bold(at)} ${colors.red('failed')} ${visible(row ?? '')}`, ...lines].join('\n')
}

/** A row may contain credentials and bodies: only what names it is repeated. */
function failureAnswer({ index, row, decision, explanation, text }: PolicyTestFailure) {
  const { name, request, as, apiKey, expect: expected } = row
  const { allowed, status, route, reason } = decision
  const code = decision.allowed ? undefined : decision.code
  return {
    row: index + 1,
    name,
    request,
    as,
    apiKey,
    expected,
    decision: { allowed, status, code, route, reason },
    stages: explanation?.stages ?? [],
    text,
  }
}
