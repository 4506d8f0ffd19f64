import { describe, expect, test } from 'vitest'
import { ownerOfUrl, ownerTimes } from '../../bench/profile/owners.ts'
import { busyMicrosOf, moduleFinder, sampledStacks } from '../../bench/profile/summary.ts'
import type { CpuProfile, ProfileNode } from '../../bench/stack/inspector.ts'

const BUNDLE = [
  'var __defProp = Object.defineProperty;',
  '// If the importer is in node compatibility mode',
  '// ../../node_modules/@upstash/redis/cloudflare.mjs',
  'var Redis = class {};',
  '// ../../src/middleware/admit.ts',
  'function admit() {}',
  '// src/plain comment',
  'function limitKey() {}',
].join('\n')

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

test('a line of the bundle belongs to its module', () => {
  const moduleOf = moduleFinder(BUNDLE)
  const modules = [0, 3, 5, 7, 1_000].map((lineNumber) =>
    moduleOf({ url: 'layers.js', lineNumber }),
  )
  expect(modules).toEqual([
    'bundle',
    '@upstash/redis',
    'src/middleware/admit.ts',
    'src/middleware/admit.ts',
    'bundle',
  ])
})

describe('a summary', () => {
  const profile: CpuProfile = {
    nodes: [
      node(1, '(root)', -1, [2, 5, 6]),
      node(2, 'admit', 5, [3, 4]),
      node(3, 'fetch', -1),
      node(4, 'request', 3),
      node(5, '(idle)', -1),
      node(6, '(garbage collector)', -1),
    ],
    samples: [2, 3, 4, 5, 6, 2],
    timeDeltas: [0, 100, 290, 210, 1_000, 400],
  }
  const stacks = sampledStacks(profile, moduleFinder(BUNDLE))

  test('time lasts until the next sample, without idle time', () => {
    expect(busyMicrosOf(stacks, 10)).toBe(100)
    expect(stacks.map(({ frames: [top], micros }) => [top?.name, micros])).toEqual([
      ['admit', 100],
      ['fetch', 290],
      ['request', 210],
      ['(garbage collector)', 400],
    ])
  })
})

test('time on Node belongs to the package, folder or platform function that runs', () => {
  const of = (id: number, functionName: string, url: string) => ({
    id,
    callFrame: { functionName, url, lineNumber: 0, columnNumber: 0 },
    children: id === 1 ? [2, 3, 4, 5, 6, 7] : [],
  })
  const profile: CpuProfile = {
    nodes: [
      of(1, '(root)', ''),
      of(2, 'dispatch', 'file:///a/node_modules/undici/lib/pool.js'),
      of(3, 'admit', 'file:///a/src/middleware/admit.ts'),
      of(4, 'onread', 'node:net'),
      of(5, 'writev', ''),
      of(6, '(garbage collector)', ''),
      of(7, '(program)', ''),
    ],
    samples: [2, 3, 4, 5, 6, 7, 2],
    timeDeltas: [0, 400, 250, 200, 100, 45, 5],
  }
  const times = ownerTimes(sampledStacks(profile, ownerOfUrl), 10)
  expect(times.map(({ owner, micros }) => [owner, micros])).toEqual([
    ['undici', 40],
    ['src/middleware', 25],
    ['Node', 20],
    ['platform: writev', 10],
    ['garbage collection', 4.5],
    ['native code', 0.5],
  ])
})
