import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { COLD_STEP, FULL_STEP, STEPS } from '../../bench/layers/figures.ts'
import { LAYERS } from '../../bench/layers/layers.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8')

/** Matches the calls of the middlewares in a file. */
const STAGES =
  /\b(requestId|audit|canonicalPath|sanitizeHeaders|clientAddress|limitBody|authenticate|admit|authorize|validate|proxy)\(/g

describe('the layers are those of the gateway', () => {
  test('they run the middlewares of the pipeline in its order', () => {
    const order = (path: string) =>
      [
        ...textOf(path)
          .replace(/stage\('\w+', /g, '')
          .replace('createAudit(', 'audit(')
          // A feature may replace this stage.
          .replace('admitBy(', 'admit(')
          .matchAll(STAGES),
      ].map(([, name]) => name)
    const around = order('src/gateway/create-gateway.ts')
    const guards = order('src/gateway/guards.ts')
    expect(around.at(-1)).toBe('proxy')
    expect(guards).toContain('admit')
    const pipeline = [...around.slice(0, -1), ...guards, 'proxy']
    expect(order('bench/workers/stages.ts')).toEqual(pipeline)
  })

  test('they are bundled with the shipped settings', () => {
    const settings = (path: string) =>
      textOf(path).match(/^(?:compatibility_\w+|minify|keep_names) = .*$/gm)
    expect(settings('bench/workers/layers.toml')).toEqual(settings('wrangler.toml'))
    expect(settings('bench/workers/tokens.toml')).toEqual(settings('wrangler.toml'))
  })

  test('every step is between existing layers', () => {
    const ids = LAYERS.map(({ id }) => id)
    const named = [...STEPS, COLD_STEP, FULL_STEP].flatMap(({ of, over }) => [of, over])
    expect(named.filter((id) => !ids.includes(id))).toEqual([])
  })
})

test('committed results have command, commit, machine and versions', () => {
  const folder = join(ROOT, 'bench', 'results')
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'))
  expect(files).not.toEqual([])
  for (const file of files) {
    const result = JSON.parse(readFileSync(join(folder, file), 'utf8')) as Record<string, unknown>
    expect(result, file).toMatchObject({
      command: expect.stringMatching(/^npm run (?:bench|soak|record)\b/),
      commit: { id: expect.any(String) },
      machine: { cores: expect.any(Number) },
      versions: { workerd: expect.any(String) },
    })
  }
})
