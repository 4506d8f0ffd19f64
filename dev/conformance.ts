/**
 * Runs the conformance suite of the OpenID Foundation against this checkout, and prints a table of its
 * verdicts: `npm run conformance`, or `npm run conformance -- rp-basic nonce` for the plans whose name begins so
 * and their modules whose name contains the second word. Does nothing if `CONFORMANCE_SUITE` is not set. docs/conformance.md says how to build the suite.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSuiteClient } from './conformance/client.ts'
import { createFapiPlan } from './conformance/fapi2.ts'
import { createRelyingPartyPlan } from './conformance/relying-party.ts'
import { type Plan, runPlan, type Verdict } from './conformance/run-plan.ts'
import { type Certificate, writeCertificate } from './conformance/secure-front.ts'
import { createSignalsPlan } from './conformance/signals.ts'
import { startSuite } from './conformance/suite.ts'

/** Verdicts of a module that found no mistake. */
const ENDS = ['PASSED', 'WARNING', 'REVIEW', 'SKIPPED']

/** The plans, in the order of the table. */
const PLANS: Readonly<Record<string, (url: string, certificate: Certificate) => Promise<Plan>>> = {
  'fapi2-client-credentials': (url, certificate) =>
    createFapiPlan('client_credentials', url, certificate),
  'fapi2-code': (url, certificate) => createFapiPlan('code', url, certificate),
  'rp-basic': (url, certificate) => createRelyingPartyPlan('basic', url, certificate),
  'rp-logout': (url, certificate) => createRelyingPartyPlan('logout', url, certificate),
  'ssf-push': (url, certificate) => createSignalsPlan('default', 'push', url, certificate),
  'ssf-poll': (url, certificate) => createSignalsPlan('default', 'poll', url, certificate),
  'ssf-caep-push': (url, certificate) =>
    createSignalsPlan('caep_interop', 'push', url, certificate),
  'ssf-caep-poll': (url, certificate) =>
    createSignalsPlan('caep_interop', 'poll', url, certificate),
}

const { CONFORMANCE_SUITE: folder, CONFORMANCE_URL: running } = process.env
if (!folder && !running) {
  console.log('conformance: CONFORMANCE_SUITE is not set: nothing to run (docs/conformance.md)')
  process.exit(0)
}
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
// The suite has a certificate that signs itself. Everything is on this machine.
process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
const [wantedPlan = '', wantedModule = ''] = process.argv.slice(2)
const certificates = mkdtempSync(join(tmpdir(), 'conformance-'))
try {
  await main()
} finally {
  rmSync(certificates, { recursive: true })
}

async function main(): Promise<void> {
  const certificate = writeCertificate(certificates)
  const suite = running
    ? { url: running, close() {} }
    : await startSuite({
        folder: folder ?? '',
        database: process.env.CONFORMANCE_DATABASE ?? 'mongodb://127.0.0.1:27017/test_suite',
        java: process.env.CONFORMANCE_JAVA ?? 'java',
        certificate,
      })
  try {
    const client = createSuiteClient(suite.url)
    console.log(`Conformance suite ${(await client.version()).version}`)
    for (const [name, create] of Object.entries(PLANS)) {
      if (!name.startsWith(wantedPlan)) continue
      const plan = await create(suite.url, certificate)
      try {
        const selects = (module: string) => module.includes(wantedModule)
        const verdicts = await runPlan(client, plan, selects, ({ module, verdict }) =>
          console.error(`${verdict} ${module}`),
        )
        console.log(`\n## ${plan.title}\n\n${table(verdicts)}`)
        if (verdicts.some(({ verdict }) => !ENDS.includes(verdict))) process.exitCode = 1
      } finally {
        await plan.close()
      }
    }
  } finally {
    suite.close()
  }
}

function table(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(
    ({ module, verdict, reasons }) => `| \`${module}\` | ${verdict} | ${reasons.join('; ')} |`,
  )
  return ['| Module | Verdict | What the suite notes |', '|---|---|---|', ...rows].join('\n')
}
