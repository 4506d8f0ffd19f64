/** The conformance suite of MCP, in a folder of its own. */
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PACKAGE = '@modelcontextprotocol/conformance@0.2.0-alpha.12'
const INSTALL_MS = 150_000
const RUN_MS = 240_000

/** Revisions of the protocol with a set of required scenarios. */
export const REVISIONS = ['2025-11-25', '2026-07-28'] as const

export interface Check {
  readonly id: string
  readonly status: string
}

/** The checks of each scenario, by its name. */
export type Results = ReadonlyMap<string, readonly Check[]>

export interface Suite {
  /** Runs the scenarios of a revision against a server. */
  run(url: string, revision: string): Promise<Results>
  remove(): void
}

/** Installs the suite. Returns undefined if npm cannot install it. */
export function installSuite(): Suite | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-suite-'))
  const remove = () => rmSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  try {
    const options = { cwd: folder, timeout: INSTALL_MS, stdio: 'ignore' } as const
    execFileSync('npm', ['install', '--no-audit', '--no-fund', PACKAGE], options)
  } catch {
    console.info(`MCP: no conformance suite, because npm cannot install ${PACKAGE}`)
    remove()
    return undefined
  }
  let runs = 0

  async function runSuite(url: string, revision: string): Promise<Results> {
    runs += 1
    const output = join(folder, `run-${runs}`)
    const program = join(folder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
    const run = [program, 'server', '--url', url, '--requirements', revision]
    const ran = [...run, '--output-dir', output]
    // It fails if a scenario does.
    await new Promise((resolve) => execFile(process.execPath, ran, { timeout: RUN_MS }, resolve))
    return new Map(
      readdirSync(output).map((scenario) => {
        const text = readFileSync(join(output, scenario, 'checks.json'), 'utf8')
        const name = scenario.replace(/^server-|-\d{4}-\d\d-\d\dT.*$/g, '')
        return [name, JSON.parse(text) as readonly Check[]]
      }),
    )
  }

  return { run: runSuite, remove }
}

/** Returns the checks that did not pass, such as `FAILURE sep-2575-missing-capability-http-400`. */
export const failuresIn = (checks: readonly Check[]): readonly string[] =>
  checks
    .filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
    .map(({ id, status }) => `${status} ${id}`)

/** Returns what fails through the gateway and not directly. A scenario without a result fails. */
export function worseThan(direct: Results, through: Results): readonly string[] {
  return [...direct].flatMap(([name, before]) => {
    const after = through.get(name)
    const failures = after === undefined ? ['no result'] : failuresIn(after)
    const known = failuresIn(before)
    return failures.filter((one) => !known.includes(one)).map((one) => `${name}: ${one}`)
  })
}
