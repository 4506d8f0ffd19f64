/** Names of reasons in documents, alerts and explanations, against the union of checks. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { Checks } from '../../src/problems/checks.ts'
import type { OAuthErrorCode } from '../../src/problems/reasons.ts'
import { DOCUMENTS } from '../docs/documents.ts'
import { ROOT } from '../harness/process.ts'

/** The codes that precede the name of a check. */
const CODES: Readonly<Record<Exclude<keyof Checks, 'oauth_refused'> | OAuthErrorCode, true>> = {
  token_rejected: true,
  invalid_dpop_proof: true,
  ambiguous_credentials: true,
  cross_origin_request: true,
  sign_in_required: true,
  insufficient_user_authentication: true,
  sign_in_refused: true,
  ambiguous_path: true,
  malformed_request: true,
  not_found: true,
  invalid_request: true,
  invalid_client: true,
  invalid_grant: true,
  unauthorized_client: true,
  unsupported_grant_type: true,
  unsupported_token_type: true,
  invalid_scope: true,
  invalid_target: true,
  use_dpop_nonce: true,
  unsupported_response_type: true,
  access_denied: true,
  login_required: true,
  unmet_authentication_requirements: true,
  consent_required: true,
  request_not_supported: true,
  invalid_request_uri: true,
  invalid_redirect_uri: true,
  invalid_client_metadata: true,
}
const NAMED = new RegExp(`\\b(?:${Object.keys(CODES).join('|')}):[a-z_]+(?: [/.][^\`'"]*)?`, 'g')
/** In alerts, a reason is the value of a label, and in a pattern one of several. */
const LABELS = /\breason=~?"([^"]+)"/g

const TYPES = `
import type { Check, Checks } from '${ROOT}/src/problems/checks.ts'
import type { Denial, Dependency, Fault, OAuthErrorCode } from '${ROOT}/src/problems/reasons.ts'
type Codes<Code> = Code extends 'oauth_refused' ? OAuthErrorCode : Code & string
type Reason =
  | 'ok' | Denial['code'] | OAuthErrorCode | \`\${Dependency}:\${Fault}\`
  | { [Code in keyof Checks]: \`\${Codes<Code>}:\${Check<Code>}\` }[keyof Checks]
`
const folder = mkdtempSync(join(tmpdir(), 'portcullis-checks-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Returns the names that are no reason. The compiler judges, because the names are a type. */
function unknownOf(names: readonly string[]): string[] {
  const file = join(folder, 'names.ts')
  const lines = names.map((name) => `${JSON.stringify(name)} satisfies Reason`)
  writeFileSync(file, [...lines, TYPES].join('\n'))
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--types', '', '--module', 'preserve']
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  const { stdout } = spawnSync(
    process.execPath,
    [compiler, ...options, '--allowImportingTsExtensions', file],
    { cwd: folder, encoding: 'utf8' },
  )
  const wrong = [...stdout.matchAll(/names\.ts[(:](\d+)/g)].map(([, line]) => Number(line) - 1)
  return wrong.map((line) => names[line] ?? stdout)
}

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const below = (path: string): string[] =>
  readdirSync(join(ROOT, path)).map((name) => join(path, name))

test('every reason in documents, alerts and explanations has a check of that name', () => {
  const alerts = ['ops/alerts.yml', 'ops/alerts.test.yml', 'ops/dashboard.json'].map(read)
  const texts = [...DOCUMENTS, ...below('src/gateway/explanation'), ...below('cli/policy')]
  const named = [...texts.map(read), ...alerts].flatMap((text) => text.match(NAMED) ?? [])
  const labels = alerts.flatMap((text) => [...text.matchAll(LABELS)].map(([, label = '']) => label))
  const names = [...new Set([...named, ...labels.flatMap((label) => label.split('|'))])]
  expect(names.length).toBeGreaterThan(25)
  expect(unknownOf(names)).toEqual([])
})

test('a name that no check has is found', () => {
  expect(
    unknownOf(['token_rejected:exp', 'token_rejected:expp', 'invalid_grant:code_reused', 'bannd']),
  ).toEqual(['token_rejected:expp', 'invalid_grant:code_reused', 'bannd'])
})

test('a feature of a user names its own checks, with a prefix', () => {
  expect(
    unknownOf(['malformed_request:x:tenant_header', 'malformed_request:tenant_header']),
  ).toEqual(['malformed_request:tenant_header'])
})
