/** The pages of the site, by what a reader needs: a tutorial, guides, reference, explanation, records. */

interface Pages {
  readonly text: string
  readonly pages: readonly string[]
}

export const PAGES: readonly Pages[] = [
  { text: 'Start', pages: ['index', 'tutorial'] },
  {
    text: 'Guides: in front of an API',
    pages: [
      'your-api',
      'openapi-import',
      'origins',
      'forward-auth',
      'identity-providers',
      'sign-in',
      'mcp',
      'deploy',
      'node',
      'self-hosting',
      'several-gateways',
      'redis-cluster',
    ],
  },
  {
    text: 'Guides: inside an app',
    pages: ['middleware', 'guards', 'runtimes', 'testing', 'policy-tools', 'features'],
  },
  {
    text: 'Guides: control access',
    pages: ['tokens', 'authorization-server', 'api-keys', 'relations', 'abuse', 'signals'],
  },
  { text: 'Guides: operate', pages: ['operate', 'console', 'audit'] },
  {
    text: 'Guides: migrate',
    pages: ['migrate-from-jwt-middleware', 'migrate-from-oauth2-proxy', 'migrate-from-kong'],
  },
  {
    text: 'Reference',
    pages: [
      'configuration',
      'environment',
      'issuers',
      'policy',
      'routes',
      'limits',
      'errors',
      'package',
      'storage-schema',
      'glossary',
    ],
  },
  {
    text: 'Explanation',
    pages: ['why', 'concepts', 'comparison', 'limitations', 'faq', 'architecture', 'threat-model'],
  },
]

/** Pages about what was decided, proven and measured. The search leaves them out, and so does `llms-full.txt`. */
export const RECORDS: Pages = {
  text: 'Records',
  pages: ['checklist', 'conformance', 'benchmarks', 'fleet'],
}

/** Folders of records. Each file of `decisions` and `design` is a page; `reports` are not on the sidebar. */
export const RECORD_FOLDERS = ['decisions', 'design', 'reports'] as const

/** Whether a file below docs/, such as `decisions/0001-name.md`, is a record. */
export function isRecord(path: string): boolean {
  return (
    RECORDS.pages.includes(path.replace(/\.md$/, '')) ||
    RECORD_FOLDERS.some((folder) => path.startsWith(`${folder}/`))
  )
}
