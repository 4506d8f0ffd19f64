/** A release that is not complete is not published, and its files are valid for GitHub. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { validateAction, validateWorkflow } from '@action-validator/core'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { published } from '../../../dev/package/manifest.ts'
import { mistakesInRelease, notesOf } from '../../../dev/release/examine.ts'
import { ROOT } from '../../harness/process.ts'

const WORKFLOWS = '.github/workflows'
const read = (name: string) => readFileSync(join(ROOT, name), 'utf8')
const workflows = readdirSync(join(ROOT, WORKFLOWS)).map((name) => `${WORKFLOWS}/${name}`)

const changelog = `# Changelog

## [1.2.0] - 2026-11-27

- One.

## [1.1.0] - 2026-10-01

- Two.
`
const release = (manifest: object = {}, tag = 'v1.2.0', text = changelog) =>
  mistakesInRelease({
    manifest: JSON.stringify({
      version: '1.2.0',
      repository: { url: 'git+https://x' },
      ...manifest,
    }),
    changelog: text,
    tag,
  })

describe('a release', () => {
  test('is complete with a repository, and one version in the tag, the manifest and the changelog', () => {
    expect(release()).toEqual([])
    expect(release({ repository: 'github:a/b' })).toEqual([])
  })

  test.each([
    [{ repository: undefined }, 'v1.2.0', changelog, /repository is empty/],
    [{ repository: '' }, 'v1.2.0', changelog, /repository is empty/],
    [{ repository: { url: ' ' } }, 'v1.2.0', changelog, /repository is empty/],
    [{ private: true }, 'v1.2.0', changelog, /private is true/],
    [{}, 'v1.2.1', changelog, /the tag v1\.2\.1 is not v1\.2\.0/],
    [{}, '1.2.0', changelog, /the tag 1\.2\.0 is not v1\.2\.0/],
    [{}, 'v1.2.0', '# Changelog', /no section \[1\.2\.0\]/],
    [{}, 'v1.2.0', '## [1.2.0] - unreleased', /has no date/],
  ])('with %j, the tag %s and a changelog is refused', (manifest, tag, text, message) => {
    expect(release(manifest, tag, text)).toEqual([expect.stringMatching(message)])
  })

  test('has the section of its version as its notes', () => {
    expect(notesOf(changelog, '1.2.0')).toBe('- One.')
    expect(notesOf(changelog, '1.1.0')).toBe('- Two.')
    expect(notesOf(changelog, '1.0.0')).toBe('')
  })

  test('of this checkout is refused while its manifest names no repository', () => {
    const manifest = JSON.parse(read('package.json')) as Record<string, unknown>
    const tag = `v${manifest.version}`
    const mistakes = mistakesInRelease({
      manifest: read('package.json'),
      changelog: read('CHANGELOG.md'),
      tag,
    })
    expect(mistakes.some((text) => /repository is empty/.test(text))).toBe(
      manifest.repository === undefined,
    )
  })

  test('has a manifest without what only a checkout needs, and keeps its repository', () => {
    const manifest = JSON.parse(
      published(JSON.stringify({ name: 'a', repository: 'r', scripts: {}, devDependencies: {} })),
    )
    expect(manifest).toEqual({ name: 'a', repository: 'r' })
  })
})

test.each(workflows)('%s is a valid workflow', (name) => {
  expect(validateWorkflow(read(name)).errors).toEqual([])
})

test('action.yml is a valid action', () => {
  expect(validateAction(read('action.yml')).errors).toEqual([])
})

test('the validator finds a mistake', () => {
  expect(validateWorkflow('on: push\njobs: { a: { steps: 1 } }').errors).not.toEqual([])
  expect(validateAction('name: a\nruns: { using: never }').errors).not.toEqual([])
})

interface Step {
  readonly if?: string
  readonly run?: string
  readonly uses?: string
  readonly with?: object
  readonly env?: object
}
interface Job {
  readonly needs?: string | readonly string[]
  readonly steps: readonly Step[]
}

test('nothing is published before the check and the tests, and each step gets texts as variables', () => {
  const { jobs } = parse(read(`${WORKFLOWS}/release.yml`)) as {
    readonly jobs: Readonly<Record<string, Job>>
  }
  const before = (name: string): readonly string[] => {
    const needs = [jobs[name]?.needs ?? []].flat()
    return needs.flatMap((one) => [...before(one), one])
  }
  for (const name of ['publish', 'notes', 'image'])
    expect(before(name)).toEqual(expect.arrayContaining(['check', 'test', 'long', 'package']))
  const { runs } = parse(read('action.yml')) as { readonly runs: Job }
  const steps = [...Object.values(jobs).flatMap((job) => job.steps), ...runs.steps]
  expect(steps.length).toBeGreaterThan(20)
  // A branch or a tag may have any name: an expression in a script would run it.
  expect(steps.filter((step) => step.run?.includes('${{'))).toEqual([])
})

test('a release is a commit of main, and no checkout of it leaves a token', () => {
  const { jobs } = parse(read(`${WORKFLOWS}/release.yml`)) as {
    readonly jobs: Readonly<Record<string, Job>>
  }
  const steps = Object.values(jobs).flatMap((job) => job.steps)
  const checkouts = steps.filter(({ uses }) => uses?.startsWith('actions/checkout@'))
  expect(checkouts.length).toBeGreaterThan(3)
  for (const checkout of checkouts)
    expect(checkout.with).toMatchObject({ 'persist-credentials': false })
  expect(jobs.check?.steps.slice(0, 2)).toMatchObject([
    { with: { 'fetch-depth': 0 } },
    { run: 'git merge-base --is-ancestor "$GITHUB_SHA" origin/main' },
  ])
})

test('the action runs no code of a pull request with a token, nor with the rights of the repository', () => {
  const { runs } = parse(read('action.yml')) as { readonly runs: Job }
  const [first, ...steps] = runs.steps
  expect(first?.if).toBe("github.event_name == 'pull_request_target'")
  expect(first?.run).toContain('exit 1')
  const withToken = steps.filter(({ env }) => JSON.stringify(env ?? {}).includes('token'))
  expect(withToken.map(({ run }) => run?.split(' ').slice(0, 3).join(' '))).toEqual([
    'gh pr comment',
  ])
})
