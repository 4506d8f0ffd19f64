/** Builds the documentation site, and examines what a reader and a program find on it. */
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import MiniSearch from 'minisearch'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { descriptions } from '../../docs/.vitepress/llms.ts'
import { isRecord, PAGES } from '../../docs/.vitepress/pages.ts'
import { searchOptions, searchWords } from '../../docs/.vitepress/search.ts'
import { ROOT } from '../harness/process.ts'

const BASE = '/handbook/'
const INDEX = /^@localSearchIndex.*\.js$/

let folder: string
let files: readonly string[]
let index: MiniSearch

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-site-'))
  const program = join(ROOT, 'node_modules/vitepress/bin/vitepress.js')
  await promisify(execFile)(process.execPath, [program, 'build', 'docs', '--outDir', folder], {
    cwd: ROOT,
    env: { ...process.env, DOCS_BASE: BASE },
  })
  files = await readdir(folder, { recursive: true })
  const chunks = join(folder, 'assets/chunks')
  const chunk = (await readdir(chunks)).find((name) => INDEX.test(name)) ?? ''
  const { default: json } = (await import(pathToFileURL(join(chunks, chunk)).href)) as {
    readonly default: string
  }
  // As the search box of the site does.
  index = MiniSearch.loadJSON(json, {
    fields: ['title', 'titles', 'text'],
    storeFields: ['title', 'titles'],
    searchOptions,
    ...searchWords,
  })
})

afterAll(() => rm(folder, { recursive: true, force: true }))

/** Returns the page, or the section of a page, of each result, without the base. */
const found = (question: string): readonly string[] =>
  index.search(question).map(({ id }) => String(id).slice(BASE.length))

describe('the search finds the answer among the first three results:', () => {
  test.each([
    ['how to put it behind Traefik', /^forward-auth/],
    ['limits by plan', /^limits#(plans-and-quotas|limits)/],
    ['why was this refused', /^audit#why-a-request-was-refused/],
    ['which runtimes', /^(runtimes|faq#which-runtimes)/],
    ['compared with oauth2-proxy', /^comparison/],
    ['how to get groups to my origin', /^(policy#claims-in-headers|your-api#request-headers)/],
    ['rotate keys', /^(deploy#rotate-keys|tokens#signing-keys)/],
    ['set up Keycloak', /^(identity-providers#keycloak|faq#how-do-i-set-up)/],
    ['Auth0 set-up', /^(identity-providers#auth0|faq#how-do-i-set-up)/],
    ['revoke everything of a user', /^(operate#revoking-access|faq#how-do-i-revoke)/],
    ['log a user out everywhere', /^(operate#revoking-access|faq#how-do-i-revoke)/],
    ['GDPR erasure', /^(audit#personal-data|faq#how-do-i-erase)/],
    ['upgrade without downtime', /^(self-hosting#upgrade|faq#how-do-i-upgrade)/],
    ['block an IP address', /^(abuse#bans|faq#how-do-i-block)/],
    ['use without Redis', /^faq#can-i-use-it-without-redis/],
    ['token is 401 but valid', /^(identity-providers#find-the-mistake|faq#my-token)/],
  ])('%s', (question, answer) => {
    expect(found(question).slice(0, 3)).toContainEqual(expect.stringMatching(answer))
  })
})

test('the search contains every page but the records', () => {
  const indexed = new Set(found(MiniSearch.wildcard as unknown as string).map(pageOf))
  expect([...indexed].filter((page) => isRecord(`${page}.md`))).toEqual([])
  const pages = PAGES.flatMap((group) => group.pages)
  expect([...indexed].sort()).toEqual(pages.map((page) => (page === 'index' ? '' : page)).sort())
})

test('each page of the sidebar has a line on the first page, which llms.txt repeats', async () => {
  const pages = PAGES.flatMap((group) => group.pages).filter((page) => page !== 'index')
  expect(pages.filter((page) => !descriptions().has(page))).toEqual([])
  const text = await readFile(join(folder, 'llms.txt'), 'utf8')
  expect(text).toMatch(/^# Portcullis\n\n> Portcullis is /)
  for (const page of pages)
    expect(text).toContain(`](${BASE}${page}.md): ${descriptions().get(page)}`)
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, to = '']) => to.slice(BASE.length))
  expect(links.filter((file) => !files.includes(file))).toEqual([])
})

test('llms-full.txt contains the pages, and no record', async () => {
  const text = await readFile(join(folder, 'llms-full.txt'), 'utf8')
  expect(text).toContain('# The policy file')
  expect(text).not.toContain('# Checklist')
})

test('no page loads anything from another host', async () => {
  const pages = files.filter((file) => file.endsWith('.html'))
  expect(pages.length).toBeGreaterThan(50)
  for (const page of pages) {
    const html = await readFile(join(folder, page), 'utf8')
    const loaded =
      /<(?:script|img|iframe|link|object|source)\b[^>]*\b(?:src|href|data)="(?:https?:)?\/\//
    expect(html.match(loaded)?.[0], page).toBeUndefined()
  }
})

const pageOf = (id: string): string => id.split('#')[0]?.replace(/\.html$/, '') ?? ''
