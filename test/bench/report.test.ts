import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { drawBars } from '../../bench/report/bar-chart.ts'
import { chartsOf } from '../../bench/report/charts.ts'
import { valueText } from '../../bench/report/format.ts'
import { HEADLINES, headlinesOf } from '../../bench/report/headlines.ts'
import { markdownTable, plainTable } from '../../bench/report/markdown.ts'
import { withFigures } from '../../bench/report/outputs.ts'
import published from '../../bench/report/published.json' with { type: 'json' }
import { reportOf } from '../../bench/report/report.ts'
import { readResults } from '../../bench/report/results.ts'
import { SCENARIOS } from '../../bench/scenarios/index.ts'
import { ROOT } from '../harness/process.ts'

const RUN = join(ROOT, 'bench', 'report', 'run.ts')
const FIXTURES = join(import.meta.dirname, 'report-results')
const work = mkdtempSync(join(tmpdir(), 'report-test-'))
afterAll(() => rmSync(work, { recursive: true, force: true }))

interface Ended {
  readonly code: number
  readonly stderr: string
}

function report(...args: readonly string[]): Promise<Ended> {
  return new Promise((done) => {
    execFile(process.execPath, [RUN, ...args], { cwd: ROOT }, (error, _, stderr) =>
      done({ code: error === null ? 0 : Number(error.code), stderr }),
    )
  })
}

/** Creates a folder with the fixtures, one of them changed. */
function resultsWith(name: string, change: (text: string) => string): string {
  const folder = mkdtempSync(join(work, 'results-'))
  cpSync(FIXTURES, folder, { recursive: true })
  writeFileSync(join(folder, name), change(readFileSync(join(FIXTURES, name), 'utf8')))
  return folder
}

test('the committed report and the figures of the documents match the committed results', async () => {
  expect(await report('--check')).toEqual({ code: 0, stderr: '' })
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

test('the page about benchmarks has at most 6 KB, and the report is outside of the search', () => {
  const page = readFileSync(join(ROOT, 'docs', 'benchmarks.md'), 'utf8')
  expect(Buffer.byteLength(page)).toBeLessThanOrEqual(6_144)
  const full = readFileSync(join(ROOT, 'docs', 'reports', 'benchmarks.md'), 'utf8')
  expect(full).toMatch(/^---\nsearch: false\n---\n/)
})

describe('the charts', () => {
  const charts = chartsOf(readResults(join(ROOT, 'bench', 'results')))
  const textsIn = (svg: string) =>
    [...svg.matchAll(/<text(?: class="(\w+)")? x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</g)].map(
      ([, style, x = '', y = '', text = '']) => {
        // Wider than a letter of any common font, on average.
        const width = (style === 'small' ? 12 : 14) * 0.62 * text.length
        return { text, right: Number(x) + width, bottom: Number(y) }
      },
    )

  test('are on the page of the report, with the figures of the committed results', () => {
    const page = readFileSync(join(ROOT, 'docs', 'reports', 'benchmarks.md'), 'utf8')
    expect(charts.map(({ name }) => name)).toEqual(['cpu', 'growth'])
    for (const { name, alt, svg } of charts) {
      expect(page).toContain(`![${alt}](../images/benchmarks/${name}.svg)`)
      const path = join(ROOT, 'docs', 'images', 'benchmarks', `${name}.svg`)
      expect(readFileSync(path, 'utf8')).toBe(svg)
    }
    const summary = readFileSync(join(ROOT, 'docs', 'benchmarks.md'), 'utf8')
    expect(summary).toContain('(images/benchmarks/cpu.svg)')
    const [cpu, growth] = charts
    // Half a decade is not a decade.
    expect(growth?.svg).toContain('1 to 2 processes on one port, extrapolated')
    expect(growth?.svg).toContain('>10 to 2,000 routes of the policy<')
    const { runs } = readResults(join(ROOT, 'bench', 'results'))
    const figures = runs.flatMap(({ measured }) => measured.figures)
    const durable = figures.find(({ id }) => id === 'durable-to-bare')
    expect(cpu?.svg).toContain(`>${valueText(durable ?? { value: 0, unit: 'ratio' })}<`)
  })

  test('have no label that is cut, and load nothing', () => {
    for (const { svg } of charts) {
      const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg) ?? []
      const texts = textsIn(svg)
      expect(texts.length).toBeGreaterThan(10)
      for (const { text, right, bottom } of texts) {
        expect(right, text).toBeLessThan(Number(width))
        expect(bottom, text).toBeLessThan(Number(height))
      }
      expect(svg).not.toMatch(/<script|<image|href|url\(|@import|undefined|NaN/)
    }
  })

  test('draw each bar from 0 with its spread and its aim, and escape labels', () => {
    const bar = { label: 'a < b & c', value: 2, quartiles: [1, 3], aim: 4, text: '2' } as const
    const reference = { value: 1, text: 'one' }
    const svg = drawBars({ title: 't', description: 'd', reference, bars: [bar] })
    expect(svg).toContain('a &lt; b &amp; c')
    expect(svg).toMatch(/class="bar" x="20" y="\d+" width="240.0"/)
    expect(svg).toMatch(/class="spread" d="M140.0 \d+H380.0/)
    expect(svg).toMatch(/class="aim" d="M500.0 /)
  })
})

describe('selected results', () => {
  const QUICK = '2026-01-02-quick.json'
  const SOAK = '2026-01-02-soak.json'
  /** Saves a changed copy of a fixture. */
  function copy(folder: string, from: string, name: string, change: object): void {
    const result = JSON.parse(readFileSync(join(FIXTURES, from), 'utf8')) as object
    writeFileSync(join(folder, name), JSON.stringify({ ...result, ...change }))
  }
  const pathsOf = (folder: string) => readResults(folder).runs.map(({ saved }) => saved.path)

  test('a full run is not replaced by a newer quick run, and replaces an older one', () => {
    const folder = resultsWith(QUICK, (text) => text)
    copy(folder, QUICK, '2025-12-31-full.json', {
      effort: 'full',
      date: '2025-12-31T00:00:00.000Z',
    })
    expect(new Set(pathsOf(folder))).toEqual(new Set([join(folder, '2025-12-31-full.json')]))
  })

  test('the newer soak is used', () => {
    const folder = resultsWith(SOAK, (text) => text)
    copy(folder, SOAK, '2026-01-10-soak.json', { date: '2026-01-10T00:00:00.000Z' })
    expect(readResults(folder).soaks.map(({ path }) => path)).toEqual([
      join(folder, '2026-01-10-soak.json'),
    ])
  })

  test('a later run of one scenario replaces its result, whatever the name of its file', () => {
    const folder = resultsWith(QUICK, (text) => text)
    const before = readResults(folder).runs
    const [first] = before
    if (first === undefined) throw new Error('no run')
    const figures = first.measured.figures.map((figure) => ({ ...figure, value: 4_711 }))
    const measured = [{ ...first.measured, figures }]
    copy(folder, QUICK, '2026-01-02-a.json', {
      measured,
      failed: [],
      date: '2026-01-03T00:00:00.000Z',
    })
    const after = readResults(folder).runs
    expect(after[0]?.saved.path).toBe(join(folder, '2026-01-02-a.json'))
    expect(after[0]?.measured.figures).toEqual(figures)
    expect(after.slice(1).map((run) => run.measured)).toEqual(
      before.slice(1).map((run) => run.measured),
    )
    copy(folder, QUICK, '2026-01-02-a.json', {
      measured,
      failed: [],
      date: '2025-12-01T00:00:00.000Z',
    })
    expect(readResults(folder).runs[0]?.measured).toEqual(first.measured)
  })

  test.each([
    ['no JSON', () => '{', '2026-01-02-quick.json is not JSON'],
    ['foreign', () => '{"benchmark":"layers"}', 'is not a results file: '],
    [
      'a figure without a value',
      (text: string) => text.replace('"value": 181.2', '"value": null'),
      'is not a results file: Invalid input: expected number, received null',
    ],
  ])('%s: one line and exit code 2, and no output', async (_, change, line) => {
    const from = resultsWith(QUICK, change)
    const out = join(mkdtempSync(join(work, 'out-')), 'report')
    const { code, stderr } = await report('--from', from, '--out', out)
    expect({ code, lines: stderr.trim().split('\n').length }).toEqual({ code: 2, lines: 2 })
    expect(stderr).toContain(line)
    expect(readdirSync(join(out, '..'))).toEqual([])
  })

  test.each([
    [['--from', 'no/such/folder', '--out', work], 'does not exist'],
    [['--from', FIXTURES], '--from needs --out'],
    [['--unknown'], "Unknown option '--unknown'"],
  ])('%j is refused', async (args, line) => {
    const { code, stderr } = await report(...args)
    expect(code).toBe(2)
    expect(stderr).toContain(line)
  })
})

describe('contents of the report', () => {
  const results = readResults(FIXTURES)
  const text = reportOf(results, new Map(), (path) => path)

  test('missed aims, broken invariants and failed scenarios are in it', () => {
    expect(text).toMatch(/\| missed \|/)
    expect(text).toContain('| too short to decide |')
    for (const { scenario, runtime, why } of results.failed)
      expect(text).toContain(`\`${scenario}\`, ${runtime}: ${why.slice(0, 10)}`)
  })

  test('every published figure is listed, with or without a measured one', () => {
    for (const { of, value } of Object.values(published))
      expect(text).toContain(`| ${plainTable([of, value], []).split('\n')[0]?.slice(2)}`)
    expect(text).toMatch(/\| time added by authentication \|[^|]*\|[^|]*0\.12 ms/)
    expect(text).toMatch(/\| time added by roles \|[^|]*\| - \|/)
  })

  test('headlines refer to existing scenarios, and the committed results have each of them', () => {
    const ids: readonly string[] = SCENARIOS.map(({ id }) => id)
    expect(HEADLINES.filter(([scenario]) => !ids.includes(scenario))).toEqual([])
    const whats = headlinesOf(readResults(join(ROOT, 'bench', 'results'))).map(({ what }) => what)
    expect(HEADLINES.filter(([, , what]) => !whats.includes(what))).toEqual([])
  })

  test('text from files is escaped', () => {
    expect(markdownTable(['a'], [['x|y\nz']])).toBe('| a |\n| --- |\n| x\\|y z |')
    expect(plainTable(['a'], [['<b> `c<d>`']])).toBe('| a |\n| --- |\n| \\<b\\> `c<d>` |')
    expect(text).not.toContain('<script>')
  })

  test('text around the figures of a document does not change', () => {
    const document = 'a\n<!-- figures:begin -->\nold\n<!-- figures:end -->\nb\n'
    const changed = withFigures(document, 'new')
    expect(changed).toBe(document.replace('old', 'new'))
    expect(withFigures(changed, 'new')).toBe(changed)
    expect(() => withFigures('a', 'new')).toThrow('missing markers <!-- figures:begin -->')
  })
})

describe('the check', () => {
  test('names the file that does not match the results', async () => {
    const out = mkdtempSync(join(work, 'check-'))
    const args = ['--from', FIXTURES, '--out', out]
    expect((await report(...args)).code).toBe(0)
    expect(await report(...args, '--check')).toEqual({ code: 0, stderr: '' })
    writeFileSync(join(out, 'report.md'), 'by hand')
    const { code, stderr } = await report(...args, '--check')
    expect(code).toBe(1)
    expect(stderr).toContain('report.md does not match the results')
    expect(stderr.trim().split('\n')).toHaveLength(1)
  })
})
