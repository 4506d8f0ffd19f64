/** `portcullis policy check`: the mistakes in a policy. */
import { relative } from 'node:path'
import type { Misconfigured } from '../../src/errors.ts'
import { requirePolicy } from '../../src/policy/policy.ts'
import { REFUSED } from '../failure.ts'
import { createOutput } from '../output.ts'
import { requireProject } from '../project.ts'
import { counted, table } from '../text.ts'
import type { Finding } from './finding.ts'
import { loadPolicy, policyFile } from './load.ts'
import { findingsOf } from './mistakes.ts'

export interface CheckOptions {
  readonly json?: boolean
}

const COLUMNS = ['severity', 'rule', 'finding']

/** Checks the policy, prints the findings, and sets the exit code to 1 if there is an error. */
export async function checkPolicy(
  named: string | undefined,
  { json = false }: CheckOptions,
  folder: string,
): Promise<void> {
  const root = requireProject(folder)
  const file = policyFile(named, '[file]', folder, root)
  const findings = await findingsIn(file, root)
  const output = createOutput(json)
  const rows = findings.map(({ severity, rule, message }) => ({ severity, rule, finding: message }))
  const shown = relative(folder, file)
  const errors = findings.filter(({ severity }) => severity === 'error').length
  const text = rows.length === 0 ? `${shown}: no findings` : table(rows, COLUMNS, output.style)
  output.result({ file: shown, ok: errors === 0, findings }, text)
  output.remark(`${shown}: ${counted(errors, 'error')}.`)
  if (errors > 0) process.exitCode = REFUSED
}

async function findingsIn(file: string, root: string): Promise<readonly Finding[]> {
  try {
    requirePolicy(await loadPolicy(file, root))
    return []
  } catch (error) {
    const { name, mistakes, rows = [] } = error as Misconfigured
    if (name !== 'Misconfigured') throw error
    return findingsOf({ mistakes, rows })
  }
}
