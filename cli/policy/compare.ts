/** `portcullis policy diff`: compares two policies, and prints the changes. */
import { REFUSED, usage } from '../failure.ts'
import { createOutput } from '../output.ts'
import { requireProject } from '../project.ts'
import { type Style, visible } from '../text.ts'
import type { Change, Effect } from './change.ts'
import { diffPolicies } from './diff.ts'
import { policyFile } from './load.ts'
import { markdownCell } from './markdown.ts'
import { openRevisions } from './revisions.ts'

export interface DiffOptions {
  readonly json?: boolean
  readonly rev?: string
  readonly format?: string
  readonly failOn?: string
}

const EFFECTS: readonly Effect[] = ['widening', 'narrowing', 'neutral']
const PAINTS = { widening: 'yellow', narrowing: 'cyan', neutral: 'dim' } as const

/** Prints the changes, and sets the exit code to 1 if one of them is of the class `failOn`. */
export async function comparePolicies(
  specs: readonly string[],
  { json = false, rev, format = 'text', failOn }: DiffOptions,
  folder: string,
): Promise<void> {
  const root = requireProject(folder)
  const revisions = openRevisions(folder, root)
  try {
    const changes = await changesBetween()
    const output = createOutput(json)
    const text = format === 'markdown' ? markdownOf(changes) : linesOf(changes, output.style)
    output.result({ changes }, text)
    const isRefused = changes.some(
      ({ effect }) => effect === failOn || (failOn === 'any' && effect !== 'neutral'),
    )
    if (isRefused) process.exitCode = REFUSED
  } finally {
    revisions.close()
  }

  async function changesBetween(): Promise<readonly Change[]> {
    const [one, another, ...others] = specs
    if (rev !== undefined) {
      if (another !== undefined) throw usage('--rev compares one file; name only one')
      const file = policyFile(one, '[policies]', folder, root)
      return diffPolicies(await revisions.loadAt(rev, file), await revisions.load(file))
    }
    if (one === undefined || another === undefined || others.length > 0)
      throw usage('name two policies: files, or revision:path; or one with --rev')
    return diffPolicies(await revisions.load(one), await revisions.load(another))
  }
}

function linesOf(changes: readonly Change[], { colors }: Style): string {
  if (changes.length === 0) return 'No changes.'
  return EFFECTS.flatMap((effect) => {
    const found = changes.filter((change) => change.effect === effect)
    if (found.length === 0) return []
    const heading = `${colors[PAINTS[effect]](effect)} (${found.length})`
    return [heading, ...found.map(({ text }) => `  ${visible(text)}`)]
  }).join('\n')
}

/** Returns a table for a comment on a pull request. */
export function markdownOf(changes: readonly Change[]): string {
  if (changes.length === 0) return 'The policy does not change.'
  const counts = EFFECTS.map(
    (effect) => `${changes.filter((change) => change.effect === effect).length} ${effect}`,
  )
  const rows = EFFECTS.flatMap((effect) =>
    changes
      .filter((change) => change.effect === effect)
      .map(({ text }) => `| ${effect} | ${markdownCell(text)} |`),
  )
  return [
    `Changes of the policy: ${counts.join(', ')}.`,
    '',
    '| Effect | Change |',
    '|---|---|',
    ...rows,
  ].join('\n')
}
