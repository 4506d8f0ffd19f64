/** The size of the README, every relative link of every Markdown file, and the paths that documents name. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { sidebar } from '../../docs/.vitepress/sidebar.ts'
import { ROOT } from '../harness/process.ts'
import { outlineOf } from './blocks.ts'
import { CONFIGURATION, DOCUMENTS, readDocument } from './documents.ts'
import { anchorsOf, faultOf, missingPaths, relativeLinks } from './link-faults.ts'

const README_MAX_BYTES = 9_216
const ABOUT_CODE =
  /^(?:CONTRIBUTING|bench\/README|docs\/(?:architecture|checklist|glossary|storage-schema|threat-model))\.md$|^docs\/decisions\//
/** Folders whose own folders have rows. */
const HOUSES = new Set(['src/features', 'src/runtimes'])

test('README.md fits on about one screen', () => {
  expect(statSync(join(ROOT, 'README.md')).size).toBeLessThanOrEqual(README_MAX_BYTES)
})

test('every kind of document is checked', () => {
  expect(DOCUMENTS).toContain('README.md')
  expect(DOCUMENTS).toContain('docs/configuration.md')
  expect(DOCUMENTS).toContain('bench/README.md')
  expect(DOCUMENTS.filter((path) => path.startsWith('docs/decisions/')).length).toBeGreaterThan(40)
})

test('the index of the configuration keeps the anchor of each section of its pages', () => {
  const sections = CONFIGURATION.flatMap((path) => outlineOf(readDocument(path)).headings.slice(1))
  const index = readDocument('docs/configuration.md')
  expect(sections.length).toBeGreaterThan(35)
  for (const section of sections) {
    const [anchor = ''] = anchorsOf(`# ${section}`)
    expect(anchorsOf(index)).toContain(anchor)
    expect(index).toContain(`.md#${anchor})`)
  }
})

test('each decision record has a number of its own', () => {
  const numbers = DOCUMENTS.flatMap((path) => /^docs\/decisions\/(\d{4})-/.exec(path)?.[1] ?? [])
  expect(numbers).toEqual([...new Set(numbers)])
})

describe('relative links lead to a file and a heading that exist:', () => {
  test.each(DOCUMENTS)('%s', (document) => {
    const links = relativeLinks(readDocument(document))
    expect(links.map((target) => faultOf(document, target)).filter(Boolean)).toEqual([])
  })

  test('and the check reports a link that leads nowhere', () => {
    expect(faultOf('README.md', 'docs/no-such-file.md')).toContain('no such file')
    expect(faultOf('README.md', 'docs/errors.md#no-such-heading')).toContain('no heading')
    expect(faultOf('README.md', '#no-such-heading')).toContain('no heading')
    expect(faultOf('docs/errors.md', '../src/errors.ts#L1')).toContain('only Markdown files')
    expect(relativeLinks('[a](b.md#c) `[d](e.md)` [f](https://g.example)')).toEqual(['b.md#c'])
    expect([...anchorsOf('# A `b`\n\n## [C](d.md): e\n\n## A b\n')]).toEqual([
      'a-b',
      'c-e',
      'a-b-1',
    ])
    expect([...anchorsOf('* <a id="limits"></a>[Limits](limits.md)')]).toEqual(['limits'])
  })
})

test('the sidebar of the site lists every page of docs/ once', () => {
  const listed = sidebar().flatMap(({ items }) => items.map(({ link }) => link))
  const files = listed.map((link) => `docs${link === '/' ? '/index' : link}.md`)
  expect(files.sort()).toEqual(DOCUMENTS.filter((path) => /^docs\/(?!reports\/)/.test(path)).sort())
})

describe('files and folders that documents about the code name exist:', () => {
  test.each(DOCUMENTS.filter((path) => ABOUT_CODE.test(path)))('%s', (document) => {
    expect(missingPaths(readDocument(document))).toEqual([])
  })

  test('and the check reports one that does not', () => {
    const text = '`src/http/`, `src/htp/path.ts`, `src/middleware/<name>.ts`, `GET /a/b`, `redis/`'
    expect(missingPaths(text)).toEqual(['src/htp/path.ts'])
  })
})

test('docs/architecture.md has a row for every folder of the source', () => {
  const below = (folder: string) =>
    readdirSync(join(ROOT, folder), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `${folder}/${name}`)
  const folders = below('src').filter((folder) => !HOUSES.has(folder))
  const rows =
    readDocument('docs/architecture.md')
      .match(/^\| `.+? \|/gm)
      ?.join('\n') ?? ''
  const rooms = [...folders, ...below('src/access'), ...below('src/runtimes')]
  expect(rooms.filter((room) => !rows.includes(`\`${room}/\``))).toEqual([])
})
