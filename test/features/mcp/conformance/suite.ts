/** The conformance suite of MCP, in a folder of its own. */
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PACKAGE = '@modelcontextprotocol/conformance@0.2.0-alpha.12'
const INSTALL_MS = 150_000
const RUN_MS = 120_000

export type Suite = NonNullable<ReturnType<typeof installSuite>>

/** Installs the suite. Returns undefined if the registry is missing. */
export function installSuite() {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-suite-'))
  const remove = () => rmSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  try {
    const options = { cwd: folder, timeout: INSTALL_MS, stdio: 'ignore' } as const
    execFileSync('npm', ['install', '--no-audit', '--no-fund', PACKAGE], options)
  } catch {
    console.info(`MCP: the conformance suite is skipped, because npm cannot install ${PACKAGE}`)
    remove()
    return undefined
  }
  let runs = 0

  /** Returns the checks that did not pass, by the name of their scenario. */
  async function failuresOf(
    url: string,
    revision: string,
  ): Promise<Map<string, readonly string[]>> {
    runs += 1
    const output = join(folder, `run-${runs}`)
    const program = join(folder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
    const run = [program, 'server', '--url', url, '--requirements', revision]
    const ran = [...run, '--output-dir', output]
    // It fails if a scenario does.
    await new Promise((resolve) => execFile(process.execPath, ran, { timeout: RUN_MS }, resolve))
    return new Map(
      readdirSync(output).map((scenario) => {
        const checks = JSON.parse(readFileSync(join(output, scenario, 'checks.json'), 'utf8')) as {
          readonly id: string
          readonly status: string
        }[]
        const failed = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
        const name = scenario.replace(/^server-|-\d{4}-\d\d-\d\dT.*$/g, '')
        return [name, failed.map(({ id, status }) => `${status} ${id}`)]
      }),
    )
  }

  return { failuresOf, remove }
}
