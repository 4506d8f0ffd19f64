/** The pages of the site by task. Decisions and designs are listed from their folders. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

interface Page {
  readonly text: string
  readonly link: string
}

interface Group {
  text: string
  items: Page[]
  collapsed?: boolean
}

const DOCS = join(import.meta.dirname, '..')

const PAGES = [
  [
    'Start',
    [
      'index',
      'your-api',
      'openapi-import',
      'origins',
      'mcp',
      'sign-in',
      'identity-providers',
      'middleware',
      'testing',
      'policy-tools',
      'deploy',
      'node',
      'self-hosting',
      'forward-auth',
    ],
  ],
  [
    'Control access',
    ['tokens', 'authorization-server', 'api-keys', 'relations', 'abuse', 'signals'],
  ],
  ['Operate', ['operate', 'audit', 'errors']],
  [
    'Reference',
    [
      'configuration',
      'environment',
      'issuers',
      'policy',
      'routes',
      'limits',
      'package',
      'features',
      'storage-schema',
      'architecture',
      'glossary',
    ],
  ],
  ['Assurance', ['threat-model', 'checklist', 'conformance', 'benchmarks']],
] as const

/** Returns the sidebar of the site. Titles of other pages are their first headings. */
export function sidebar(): Group[] {
  return [
    ...PAGES.map(([text, pages]) => ({ text, items: pages.map(pageOf) })),
    { text: 'Designs', items: pagesIn('design'), collapsed: true },
    { text: 'Decisions', items: pagesIn('decisions'), collapsed: true },
  ]
}

/** The pages of a folder of docs/, in the order of their names. */
function pagesIn(folder: string): Page[] {
  return readdirSync(join(DOCS, folder))
    .filter((file) => file.endsWith('.md'))
    .sort()
    .map((file) => pageOf(`${folder}/${file.slice(0, -'.md'.length)}`))
}

function pageOf(path: string): Page {
  if (path === 'index') return { text: 'Overview', link: '/' }
  const [, title = path] = /^# (.+)$/m.exec(readFileSync(join(DOCS, `${path}.md`), 'utf8')) ?? []
  return { text: title, link: `/${path}` }
}
