import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { attribute, STAGE_MODULES, stageTimes } from '../../bench/profile/stages.ts'
import { moduleFinder, sampledStacks } from '../../bench/profile/summary.ts'
import type { CpuProfile, ProfileNode } from '../../bench/stack/inspector.ts'
import { ROOT } from '../../dev/start/settings.ts'

const node = (id: number, functionName: string, line: number, children: number[] = []) =>
  ({
    id,
    callFrame: {
      functionName,
      url: line === -1 ? '' : 'layers.js',
      lineNumber: line,
      columnNumber: 0,
    },
    children,
  }) satisfies ProfileNode

/** A bundle with the stages of these tests. */
const STAGED_BUNDLE = [
  '// node_modules/hono/dist/compose.js',
  'function dispatch() {}',
  '// src/middleware/audit.ts',
  'function audit() {}',
  '// src/middleware/admit.ts',
  'function admit() {}',
  '// src/redis/rest.ts',
  'function pipelined() {}',
  '// node_modules/other/index.js',
  'function anything() {}',
].join('\n')
const [DISPATCH, AUDIT, ADMIT, UPSTASH, OTHER] = [1, 3, 5, 7, 9] as const

describe('time of stages', () => {
  /** Stacks of a request, stacks after an await, and stacks outside of a request. */
  const profile: CpuProfile = {
    nodes: [
      node(1, '(root)', -1, [2, 8, 10, 11, 12, 13, 14]),
      node(2, 'dispatch', DISPATCH, [3]),
      node(3, 'audit', AUDIT, [4]),
      node(4, 'dispatch', DISPATCH, [5]),
      node(5, 'admit', ADMIT, [6]),
      node(6, 'pipelined', UPSTASH, [7]),
      node(7, 'fetch', -1),
      node(8, 'pipelined', UPSTASH, [9]),
      node(9, 'anything', OTHER),
      node(10, 'anything', OTHER),
      node(11, '(garbage collector)', -1),
      node(12, '(program)', -1),
      node(13, '(idle)', -1),
      node(14, 'audit', AUDIT),
    ],
    samples: [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 13],
    timeDeltas: [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 5_000, 120],
  }
  const attributed = sampledStacks(profile, moduleFinder(STAGED_BUNDLE)).map(attribute)
  const times = new Map(stageTimes(attributed, 10).map((time) => [time.stage, time]))

  test('every stage of the gateway has an existing file', () => {
    for (const module of Object.values(STAGE_MODULES))
      expect(existsSync(join(ROOT, module)), module).toBe(true)
    const named = ['create-gateway.ts', 'guards.ts'].flatMap((file) => {
      const text = readFileSync(join(ROOT, 'src', 'gateway', file), 'utf8')
      return [...text.matchAll(/\bstage\(\s*'(\w+)'/g)].map(([, stage]) => stage)
    })
    expect(named).toEqual(expect.arrayContaining(['shedLoad', 'authenticate', 'admit', 'proxy']))
    for (const stage of named) expect(Object.keys(STAGE_MODULES)).toContain(stage)
  })

  test('belongs to the nearest stage on the stack, with called functions', () => {
    expect(times.get('audit')).toMatchObject({ micros: 14, byModuleMicros: 0 })
    expect(times.get('admit')).toMatchObject({ micros: 30, platformMicros: 6, byModuleMicros: 15 })
  })

  test('a dispatcher is not a stage', () => {
    expect(times.get('framework')).toMatchObject({ micros: 4, share: 0.0513 })
  })

  test('after an await it is found by module, or is unattributed', () => {
    expect(attributed.filter(({ evidence }) => evidence === 'module')).toMatchObject(
      [
        'framework',
        'framework',
        'admit',
        'admit',
        'unattributed',
        'garbage collection',
        'runtime',
      ].map((stage) => ({ stage })),
    )
    expect(times.get('unattributed')?.micros).toBe(9)
  })

  test('the platform has its own rows; all rows add up to the busy time', () => {
    expect(times.get('garbage collection')?.micros).toBe(10)
    expect(times.get('runtime')?.micros).toBe(11)
    const shares = [...times.values()].map(({ share }) => share)
    expect(shares.reduce((sum, share) => sum + share)).toBeCloseTo(1, 3)
    expect(times.get('proxy')).toMatchObject({ micros: 0, share: 0 })
  })
})
