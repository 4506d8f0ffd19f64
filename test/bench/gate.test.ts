import { execFile } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { comparisonMarkdown } from '../../bench/compare/verdict.ts'
import { ROOT } from '../harness/process.ts'

interface Step {
  readonly name?: string
  readonly uses?: string
  readonly run?: string
  readonly if?: string
  readonly with?: Readonly<Record<string, unknown>>
}

const folder = mkdtempSync(join(tmpdir(), 'gate-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A program in place of npm: adds a verdict to the file of the option, and ends with the next code. */
const NPM = `#!/usr/bin/env bash
echo "$@" >> "${folder}/calls"
for ((at = 1; at <= $#; at++)); do
  if [ "\${!at}" = --markdown ]; then next=$((at + 1)); echo "a verdict" >> "\${!next}"; fi
done
code=$(head -n 1 "${folder}/codes"); sed -i 1d "${folder}/codes"
exit "$code"
`

/** Runs the gate with these exit codes of the comparisons. */
function gate(
  ...codes: readonly number[]
): Promise<{ code: number; stdout: string; file: string }> {
  const bin = join(folder, 'bin')
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(bin, 'npm'), NPM)
  chmodSync(join(bin, 'npm'), 0o755)
  writeFileSync(join(folder, 'codes'), codes.map((code) => `${code}\n`).join(''))
  rmSync(join(folder, 'calls'), { force: true })
  const file = join(folder, 'verdict.md')
  const summary = join(folder, 'summary.md')
  rmSync(summary, { force: true })
  const env = { PATH: `${bin}:${process.env.PATH}`, GITHUB_STEP_SUMMARY: summary }
  return new Promise((done) => {
    execFile('bash', [join(ROOT, '.ci', 'compare'), 'abc', file], { env }, (error, stdout) => {
      expect(readFileSync(summary, 'utf8')).toBe(readFileSync(file, 'utf8'))
      const code = error === null ? 0 : Number(error.code)
      done({ code, stdout, file: readFileSync(file, 'utf8') })
    })
  })
}

describe('the gate of pull requests', () => {
  test('compares both runtimes with the base, and passes if none is slower', async () => {
    const { code, stdout, file } = await gate(0, 0)
    expect([code, stdout]).toEqual([0, ''])
    expect(file.match(/a verdict/g)).toHaveLength(2)
    const calls = readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n')
    expect(calls.map((call) => call.replace(/ --starts.*/, ''))).toEqual([
      'run -s bench:compare -- abc HEAD --runtime workerd',
      'run -s bench:compare -- abc HEAD --runtime node --durable',
    ])
  })

  test('fails for a significant loss of one runtime, and compares the other one still', async () => {
    const { code, file } = await gate(1, 0)
    expect(code).toBe(1)
    expect(file.match(/a verdict/g)).toHaveLength(2)
    expect(file).toContain('The check fails.')
  })

  test('that cannot decide says so, and does not fail', async () => {
    const { code, stdout } = await gate(3, 0)
    expect(code).toBe(0)
    expect(stdout).toContain('::warning title=Benchmark::workerd: too noisy to decide')
  })
})

test('a verdict names both revisions, the interval, and what it cannot decide', () => {
  const revision = (name: string) => ({ name, commit: '0123456789ab', directory: undefined })
  const text = comparisonMarkdown(
    {
      verdict: 'noisy',
      cpu: { median: 1.08, low: 0.97, high: 1.2, coverage: 0.95 },
      base: revision('main'),
      head: revision('HEAD'),
      starts: [1, 2, 3],
    },
    { thresholdPercent: 10, runtime: 'node', durable: true },
  )
  expect(text).toContain('(node, durable audit): 1.080 (95 %: 0.970 to 1.200)** of 3 starts')
  expect(text).toContain('HEAD HEAD (0123456789ab) to BASE main (0123456789ab)')
  expect(text).toContain('noisy: the measurement cannot decide')
})

describe('the workflow of pull requests', () => {
  const { on, permissions, jobs } = parse(
    readFileSync(join(ROOT, '.github', 'workflows', 'benchmark.yml'), 'utf8'),
  )
  const steps: readonly Step[] = jobs.compare.steps

  test('runs for pull requests, with the fewest permissions, and never with those of the base', () => {
    expect(Object.keys(on)).toEqual(['pull_request'])
    expect(permissions).toEqual({ contents: 'read', 'pull-requests': 'write' })
    for (const path of on.pull_request.paths)
      expect(existsSync(join(ROOT, path.replace('/**', ''))), path).toBe(true)
  })

  test('has the history of the base, and the versions of the other workflow', () => {
    const ci = parse(readFileSync(join(ROOT, '.github', 'workflows', 'ci.yml'), 'utf8'))
    const usesOf = (of: readonly Step[]) => of.flatMap(({ uses }) => uses ?? [])
    expect(usesOf(steps)).toEqual(usesOf(ci.jobs.check.steps))
    const [checkout] = steps
    expect(checkout?.with).toEqual({ 'fetch-depth': 0 })
  })

  test('commands contain no text of the pull request', () => {
    for (const { run = '' } of steps) expect(run).not.toContain('${{')
  })

  test('comments the verdict also if the check fails', () => {
    const comment = steps.at(-1)
    expect(comment?.run).toContain('gh pr comment')
    expect(comment?.if).toMatch(/^always\(\) && /)
  })
})
