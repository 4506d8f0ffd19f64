/** This checkout as a project: the default policy, the demo origin and its relations. */
import { checkModelIn } from '../model/file.ts'
import { writeDemoRelations } from './demo-relations.ts'
import { demoOf, generalRequests, shippedRequests } from './examples.ts'
import { mapImports } from './map-imports.ts'
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
  mapImports,
  checkModel: () => checkModelIn(ROOT),
  tokenCommand: 'npm run -s token --',
  async demo({ url, vars, features, policyFile }) {
    const requests =
      policyFile === undefined
        ? shippedRequests(url, await writeDemoRelations(url, vars))
        : generalRequests(url)
    return demoOf(url, requests, this.tokenCommand, features)
  },
}
