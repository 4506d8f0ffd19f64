/** Who uses a policy: the account, and the commit of the policy's file if there is one. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { deployedBy, deployerOf, withDeployer } from '../../../cli/policy/deployed-by.ts'
import { policyWith } from '../../features/console/policy.ts'
import boundedPolicy from '../../harness/bounded-policy.ts'

let folder: string
let file: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-deployed-'))
  file = join(folder, 'portcullis.config.ts')
  writeFileSync(file, 'export default 1\n')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const git = (...args: readonly string[]) =>
  execFileSync('git', ['-c', 'user.name=Ann Example', '-c', 'user.email=ann@test', ...args], {
    cwd: folder,
    stdio: 'pipe',
  })

test('names the account alone without a file, a repository, or a commit of the file', () => {
  const account = deployedBy(undefined)
  expect(account).toMatch(/^[^@,]+@/)
  expect(account.slice(account.indexOf('@') + 1)).toBe(hostname())
  expect(deployedBy(file)).toBe(account)
  git('init', '-q')
  expect(deployedBy(file)).toBe(account)
})

test('names the last commit of the file and its author, and changes that are not committed', () => {
  git('add', '-A')
  git('commit', '-qm', 'one')
  expect(deployedBy(file)).toMatch(/@.+, commit [0-9a-f]{7,} by Ann Example$/)
  writeFileSync(join(folder, 'other.ts'), '')
  expect(deployedBy(file)).not.toContain('uncommitted')
  writeFileSync(file, 'export default 2\n')
  expect(deployedBy(file)).toMatch(
    /, uncommitted changes after commit [0-9a-f]{7,} by Ann Example$/,
  )
})

test('an environment that names somebody, and a policy without a console, stay as they are', () => {
  const env = { DEPLOYED_BY: 'the release of today' }
  expect(withDeployer(env, policyWith(), file)).toBe(env)
  const none = {}
  expect(withDeployer(none, boundedPolicy, file)).toBe(none)
  expect(withDeployer(none, policyWith(), file)).toEqual({ DEPLOYED_BY: deployedBy(file) })
})

test('a deployment keeps the name that its values give, also if its policy cannot be read', async () => {
  expect(await deployerOf(folder, { DEPLOYED_BY: 'release 42' })).toBe('release 42')
  expect(await deployerOf(folder, {})).toBeUndefined()
})
