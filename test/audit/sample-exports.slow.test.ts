/** Exports of each format, verified by the command line and by a program that was written after the document. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rowsOfBlock } from '../../cli/chain-hash.ts'
import { publicKeysIn } from '../../cli/checkpoints.ts'
import { createErasures } from '../../cli/erasures.ts'
import { readExports } from '../../cli/exports.ts'
import { verifyChain } from '../../cli/verify.ts'
import { ROOT } from '../harness/process.ts'
import {
  dropEnd,
  extendCheckpoint,
  hideChange,
  numberErasure,
  recordInErased,
  renameKind,
  repeatMember,
  rewriteBegin,
  writeFraction,
} from './altered-exports.ts'
import { SAMPLES, writeSampleExports } from './sample-exports.ts'

const VERIFIER = join(ROOT, 'examples/verify-export/verify.py')
const hasPython = spawnSync('python3', ['--version']).status === 0
const hasCryptography = spawnSync('python3', ['-c', 'import cryptography']).status === 0

let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-samples-'))
  await writeSampleExports(folder)
})
afterAll(() => rmSync(folder, { recursive: true }))

const filesOf = (name: string) => {
  const directory = join(folder, name, 'audit/0')
  return readdirSync(directory).map((file) => join(directory, file))
}
const textOf = (name: string) =>
  filesOf(name)
    .map((file) => readFileSync(file, 'utf8'))
    .join('')

function python(name: string) {
  const keys = hasCryptography ? ['--jwks', join(folder, 'keys.json')] : []
  const { status, stdout, stderr } = spawnSync('python3', [VERIFIER, join(folder, name), ...keys])
  return { status, output: `${stdout}${stderr}` }
}

async function commandLine(name: string) {
  const { reader, extent } = await readExports([join(folder, name)])
  const keys = publicKeysIn(readFileSync(join(folder, 'keys.json'), 'utf8'))
  return verifyChain(reader(), keys, extent)
}

describe.each(Object.keys(SAMPLES))('an export of the kind %s', (name) => {
  test('is valid by the command line, and contains no erased person', async () => {
    const { findings, ok, erased } = await commandLine(name)
    expect(findings).toEqual([])
    expect(ok).toBe(true)
    const isErased = name.includes('erased') || name === 'pruned'
    expect(erased > 0).toBe(isErased)
    expect(textOf(name).includes('alice')).toBe(!isErased)
  })

  test.runIf(hasPython)('is valid by the document', () => {
    expect(python(name)).toMatchObject({ status: 0, output: expect.stringMatching(/^\d+ events/) })
  })
})

test.runIf(hasPython).each(['first-format-erased', 'rows-erased', 'blocks-erased'])(
  'a change in the export %s is found by the document',
  (name) => {
    const [file = ''] = filesOf(name)
    const whole = readFileSync(file, 'utf8')
    try {
      for (const [before, after] of [
        ['rate_limited:standard', 'rate_limited:standarD'],
        ['"status":429', '"status":428'],
        ['429', '428'],
      ] as const) {
        if (!whole.includes(before)) continue
        // The first rows may be erased ones of the first format, which have no commitments.
        const at = whole.lastIndexOf(before)
        writeFileSync(file, whole.slice(0, at) + after + whole.slice(at + before.length))
        expect(python(name).status, before).toBe(1)
      }
      const lines = whole.split('\n')
      writeFileSync(file, lines.toSpliced(Math.floor(lines.length / 2), 1).join('\n'))
      expect(python(name).status, 'a line is missing').toBe(1)
    } finally {
      writeFileSync(file, whole)
    }
  },
)

/** Verifies a sample with an altered first file. */
async function verdictsOf(name: string, alter: (file: string) => string) {
  const [file = ''] = filesOf(name)
  const whole = readFileSync(file, 'utf8')
  const altered = alter(whole)
  expect(altered).not.toBe(whole)
  try {
    writeFileSync(file, altered)
    const refused = (error: unknown) => ({ ok: false, findings: [String(error)], unproven: [] })
    return {
      line: await commandLine(name).catch(refused),
      document: hasPython ? python(name) : undefined,
    }
  } finally {
    writeFileSync(file, whole)
  }
}

test.each([
  ['an operator change inside the commitment of its caller', 'blocks', hideChange],
  ['an id of an erasure that is no text', 'blocks-erased', numberErasure],
  ['a repeated member of a row', 'rows', repeatMember],
  ['a fraction in a row', 'rows', writeFraction],
  ['another member of a checkpoint', 'blocks', extendCheckpoint],
  ['an unknown kind of a checkpoint', 'blocks', renameKind],
] as const)('%s is found, although every hash is right [S66]', async (_, name, alter) => {
  const { line, document } = await verdictsOf(name, alter)
  expect(line.ok).toBe(false)
  if (document) expect(document).toMatchObject({ status: 1 })
})

test('a missing end of a file is found by the name of the file [S66]', async () => {
  const { line, document } = await verdictsOf('blocks', dropEnd)
  expect(line.findings).toContainEqual(expect.objectContaining({ kind: 'missing' }))
  if (document) expect(document.output).toContain('the file ends before its name says')
})

test('rows before an erased one of the first format are reported as not proven [S66]', async () => {
  const alter = (file: string) => rewriteBegin(file).file
  const { line, document } = await verdictsOf('first-format-erased', alter)
  expect(line).toMatchObject({ ok: true, unproven: [{ from: 1, to: 29 }] })
  if (document) expect(document.output).toContain('not proven: rows 1 to 29')
  expect((await commandLine('rows-erased')).unproven).toEqual([])
})

test('an erased row of the first format records no erasure [S66]', async () => {
  const { line, document } = await verdictsOf('first-format-erased', recordInErased)
  expect(line).toMatchObject({ unexplained: 1 })
  if (document)
    expect(document.output).toContain('1 of them by erasures that are not in these files')
})

/** Prints for each change and reason whether they record the erasure `x`. */
const RECORDING = `
import json, sys
sys.path.append(sys.argv[1])
from verify import Chain
def records(change, reason):
    chain = Chain()
    chain.explain(change, reason)
    chain.erased = {"x": [1]}
    return chain.unrecorded() == 0
print(json.dumps([records(*one) for one in json.load(sys.stdin)]))
`

function isRecorded(change: string, reason: unknown): boolean {
  const erasures = createErasures()
  const line = [JSON.stringify({ reason }), 'salt', '{}', 'salt', change].join('\t')
  const block = { first_seq: 1, last_seq: 1, previous_hash: '', hash: '', lines: [line] }
  for (const [row, state] of rowsOfBlock(block)) erasures.row(row, state)
  erasures.row({ seq: 2, erasure: 'x' }, 'erased')
  return erasures.counts().unexplained === 0
}

test('only a change that is the event of an erasure records it [S66]', () => {
  const begun = (target: unknown) => JSON.stringify({ action: 'audit.erasure-begun', target })
  const done = JSON.stringify({ action: 'audit.erasure-done', target: 'x' })
  const cases: readonly (readonly [boolean, string, unknown])[] = [
    [true, begun('x'), 'audit_erasure'],
    [false, begun([]), 'audit_erasure'],
    [false, begun(['x']), 'audit_erasure'],
    [false, begun({}), 'audit_erasure'],
    [false, '['.repeat(100_000), 'audit_erasure'],
    [false, begun('x').replace('}', ',"more":NaN}'), 'audit_erasure'],
    [true, begun('x').replace('}', `,"more":${'9'.repeat(5_000)}}`), 'audit_erasure'],
    [true, done, `audit_erased:${'9'.repeat(15)}`],
    [false, done, `audit_erased:${'9'.repeat(16)}`],
    [false, done, 'audit_erased:'],
    [false, done, ['audit_erased:1']],
  ]
  const expected = cases.map(([records]) => records)
  expect(cases.map(([, change, reason]) => isRecorded(change, reason))).toEqual(expected)
  if (!hasPython) return
  const input = JSON.stringify(cases.map(([, ...event]) => event))
  const { stdout, stderr } = spawnSync('python3', ['-B', '-c', RECORDING, dirname(VERIFIER)], {
    input,
  })
  expect([String(stderr), JSON.parse(String(stdout) || 'null')]).toEqual(['', expected])
})
