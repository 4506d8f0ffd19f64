/** This checkout as a project: the default policy, the demo origin and its relations. */
import { checkModelIn } from '../model/file.ts'
import { writeDemoRelations } from './demo-relations.ts'
import { generalRequests, printed, shippedRequests } from './examples.ts'
import { featuresOf } from './policy-features.ts'
import { policyArguments } from './policy-paths.ts'
import type { Project } from './project.ts'
import { ROOT } from './settings.ts'
import { WRANGLER } from './wrangler.ts'

const AUDIT_CONFIG = 'workers/audit.toml'

export const checkout: Project = {
  root: ROOT,
  wrangler: WRANGLER,
  kind: 'gateway',
  configs: ['wrangler.toml', AUDIT_CONFIG],
  migrations: { database: 'portcullis-audit', config: AUDIT_CONFIG, folder: 'migrations' },
  demoOrigin: 'workers/origin.toml',
  vars: {},
  featuresOf: (policyFile) => featuresOf(policyFile),
  policyArguments,
  checkModel: () => checkModelIn(ROOT),
  async examples({ url, vars, features, policyFile }) {
    const requests =
      policyFile === undefined
        ? await shippedRequests(url, vars, await writeDemoRelations(url, vars))
        : await generalRequests(url, vars)
    const hasCommandLine = features.operators && features.authorizationServer
    return printed(url, requests, hasCommandLine)
  },
}
