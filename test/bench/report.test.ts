import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PUBLISHED } from '../../bench/published.ts'
import { badgeOf } from '../../bench/report/content.ts'
import { HEADLINES } from '../../bench/report/headlines.ts'
import { html, prose } from '../../bench/report/html.ts'
import { markdownTable } from '../../bench/report/markdown.ts'
import { withFigures } from '../../bench/report/outputs.ts'
import { coloursOf, dataOf, plotSvg } from '../../bench/report/plot.ts'
import { readResults } from '../../bench/report/results.ts'
import { soakPlots } from '../../bench/report/runs.ts'
import { besides, standingsOf } from '../../bench/report/standing.ts'
import { SCENARIOS } from '../../bench/scenarios/index.ts'
import { type Browser, CHROMIUM, type Page, startChromium } from '../harness/chromium.ts'
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

test('the committed report matches the committed results', async () => {
  expect(await report('--check')).toEqual({ code: 0, stderr: '' })
})

describe('selected results', () => {
  test('a full run has priority over a newer quick run', () => {
    const folder = resultsWith('2026-01-02-quick.json', (text) => text)
    const [suite] = readdirSync(folder).filter((name) => name.endsWith('quick.json'))
    cpSync(join(folder, suite ?? ''), join(folder, '2025-12-31-full.json'))
    expect(readResults(folder).suite?.path).toBe(join(folder, '2025-12-31-full.json'))
  })

  test('the newer file of a kind is used', () => {
    const folder = resultsWith('2026-01-02-soak.json', (text) => text)
    cpSync(join(folder, '2026-01-02-soak.json'), join(folder, '2026-01-10-soak.json'))
    expect(readResults(folder).soak?.path).toBe(join(folder, '2026-01-10-soak.json'))
  })

  test('a later run of a scenario replaces its result in the suite', () => {
    const folder = resultsWith('2026-01-02-quick.json', (text) => text)
    const { suite } = readResults(folder)
    const [first, ...others] = suite?.result.measured ?? []
    const figures = first?.figures.map((figure) => ({ ...figure, value: 4_711 })) ?? []
    const run = { ...suite?.result, measured: [{ ...first, figures }], failed: [] }
    const save = (date: string) =>
      writeFileSync(
        join(folder, `2026-01-03-${first?.scenario}.json`),
        JSON.stringify({ ...run, date }),
      )
    save('2026-01-03T00:00:00.000Z')
    const { suite: mended, again } = readResults(folder)
    expect(again.map(({ path }) => path)).toEqual([
      join(folder, `2026-01-03-${first?.scenario}.json`),
    ])
    expect(mended?.result.measured.slice(1)).toEqual(others)
    expect(mended?.result.measured[0]).toMatchObject({ scenario: first?.scenario, figures })
    expect(mended?.result.measured[0]?.notes?.[0]).toContain(`2026-01-03-${first?.scenario}.json`)

    save('2025-12-31T00:00:00.000Z')
    expect(readResults(folder)).toMatchObject({ again: [], suite: { result: suite?.result } })
  })

  test.each([
    ['no JSON', () => '{', '2026-01-02-quick.json is not JSON'],
    ['foreign', () => '{"benchmark":"layers"}', 'is not a results file: '],
    [
      'a figure without a value',
      (text: string) => text.replace('"value": 181.2', '"value": null'),
      'is not a results file: Invalid input: expected number, received null',
    ],
    [
      'an unknown published figure',
      (text: string) => text.replace('spacetime-auth', 'spacetime-warp'),
      'is not a results file: ',
    ],
  ])('%s: one line and exit code 2, and no output', async (_, change, line) => {
    const from = resultsWith('2026-01-02-quick.json', change)
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

  test('missed aims come first', () => {
    const standings = standingsOf(results)
    expect(standings.slice(0, 4).map(({ isMet }) => badgeOf(isMet).badge)).toEqual([
      ...['missed', 'missed', 'too short to decide', 'met'],
    ])
    expect(standings[0]).toMatchObject({ what: 'Added by the full pipeline, p50', isMet: false })
  })

  test('every published figure is listed, with or without a measured one', () => {
    const rows = besides(results).flatMap((system) => system.rows)
    expect(new Set(rows.map(({ published }) => published))).toEqual(
      new Set(Object.values(PUBLISHED)),
    )
    const rowOf = (of: string) => rows.find(({ published }) => published.of === of)
    const beside = (of: string) => rowOf(of)?.ours
    expect(beside('time added by authentication')).toMatchObject([{ value: '0.12 ms' }])
    expect(beside('time added by roles')).toEqual([])
    expect(rowOf('time added by authentication')?.verdicts).toMatchObject([{ good: 1, of: 1 }])
    expect(rowOf('time added by roles')?.verdicts).toEqual([])
  })

  test('headlines refer to existing scenarios', () => {
    const ids = SCENARIOS.map(({ id }) => id)
    expect(HEADLINES.filter(([scenario]) => !ids.includes(scenario))).toEqual([])
  })

  test('a plot is also a table, with a row for each x of any line', () => {
    const axes = { x: { title: 'x' }, y: { title: 'y' } }
    const one = {
      name: 'a',
      points: [
        [1, 10],
        [3, 30],
      ] as const,
    }
    const other = { name: 'b', points: [[2, 0.5]] as const }
    expect(dataOf({ id: 'l', title: 'l', kind: 'line', ...axes, series: [one, other] })).toEqual([
      ['1', '10', '-'],
      ['2', '-', '0.5'],
      ['3', '30', '-'],
    ])
  })

  test('a soak has plots of every line, with its faults in the background', () => {
    const { result } = results.soak ?? {}
    const plots = result === undefined ? [] : soakPlots(result)
    expect(plots.map(({ series }) => series.map(({ name }) => name))).toEqual([
      ['p50', 'p95', 'p99'],
      ['2xx', '4xx', '5xx', 'no response'],
      ['gateway 1'],
      ['gateway 1'],
    ])
    for (const { bands } of plots)
      expect(bands?.map(({ name }) => name)).toEqual(result?.faults.map(({ name }) => name))
    const svg = plots[0] === undefined ? '' : plotSvg(plots[0], 'soak').markup
    for (const { name } of result?.faults ?? []) expect(svg).toContain(name)
  })

  test('each series of a plot has its own colour, and a quantile has the same in every plot', () => {
    const names = Array.from({ length: 10 }, (_, index) => ({ name: `series ${index}` }))
    expect(new Set(coloursOf(names)).size).toBe(10)
    const [first, second] = [
      [{ name: 'p50' }, { name: 'p99' }],
      [{ name: 'other' }, { name: 'p99' }],
    ].map(coloursOf)
    expect(first?.[1]).toBe(second?.[1])
    expect(second?.[0]).not.toBe(second?.[1])
    expect(() => coloursOf([...names, { name: 'one more' }])).toThrow(RangeError)
  })

  test('text from files is escaped', () => {
    expect(html`<a title="${'"><b>'}">${[html`<i>${"'&"}</i>`]}</a>`.markup).toBe(
      '<a title="&quot;&gt;&lt;b&gt;"><i>&#39;&amp;</i></a>',
    )
    expect(prose('run `a<b>` <now>').markup).toBe('run <code>a&lt;b&gt;</code> &lt;now&gt;')
    expect(markdownTable(['a'], [['x|y\nz']])).toBe('| a |\n| --- |\n| x\\|y z |')
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
    writeFileSync(join(out, 'benchmarks.md'), 'by hand')
    const { code, stderr } = await report(...args, '--check')
    expect(code).toBe(1)
    expect(stderr).toContain('benchmarks.md does not match the results')
    expect(stderr.trim().split('\n')).toHaveLength(1)
  })
})

if (CHROMIUM === undefined)
  console.info('report: the browser tests are skipped, because Chromium is missing')

describe.skipIf(CHROMIUM === undefined)('in a browser', () => {
  let browser: Browser
  let url: string
  beforeAll(async () => {
    const out = mkdtempSync(join(work, 'page-'))
    expect((await report('--from', FIXTURES, '--out', out)).code).toBe(0)
    url = pathToFileURL(join(out, 'report.html')).href
    browser = startChromium()
  })
  afterAll(() => browser?.close())

  /** Returns the size and the number of colours of a screenshot. */
  async function measured(page: Page, base64: string) {
    return page.evaluate<{ width: number; height: number; colours: number }>(`(async () => {
      const image = new Image()
      image.src = 'data:image/png;base64,${base64}'
      await image.decode()
      const { width, height } = image
      const context = new OffscreenCanvas(width, height).getContext('2d')
      context.drawImage(image, 0, 0)
      const pixels = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer)
      return { width, height, colours: new Set(pixels).size }
    })()`)
  }

  test.each([
    ['on a desk', 1_400, 1_000],
    ['on a phone', 390, 844],
  ])('%s the page loads no other file, and fits the window', async (_, width, height) => {
    const page = await browser.open(url, width, height)

    const requested = page.events
      .filter(({ method }) => method === 'Network.requestWillBeSent')
      .map(({ params }) => (params.request as { readonly url: string }).url)
    expect(requested.filter((address) => address !== url && !address.startsWith('data:'))).toEqual(
      [],
    )
    const complaints = ['Runtime.exceptionThrown', 'Runtime.consoleAPICalled', 'Log.entryAdded']
    expect(page.events.filter(({ method }) => complaints.includes(method))).toEqual([])

    expect(
      await page.evaluate(`({
        overflow: document.scrollingElement.scrollWidth - innerWidth,
        plots: [...document.querySelectorAll('figure svg')].map((svg) => {
          const { width, height } = svg.getBoundingClientRect()
          return width > 100 && height > 50 && svg.querySelectorAll('path').length > 5
        }),
        pictures: [...document.images].map((image) => image.naturalWidth > 0),
        unnamed: [...document.querySelectorAll('svg, img')].filter((image) =>
          !(image.getAttribute('aria-label') ?? image.alt)).length,
        scripts: document.scripts.length,
        dangling: [...document.querySelectorAll('a[href^="#"]')].filter((link) =>
          document.getElementById(link.getAttribute('href').slice(1)) === null).length,
        doubled: [...document.querySelectorAll('[id]')].length -
          new Set([...document.querySelectorAll('[id]')].map(({ id }) => id)).size,
        headings: document.querySelectorAll('h1').length,
        unscoped: [...document.querySelectorAll('th')].filter((cell) => !cell.scope).length,
        outside: [...document.querySelectorAll('h1, h2, h3, p, li, figcaption')].filter((one) =>
          one.closest('.wide') === null && one.getBoundingClientRect().right > innerWidth + 1).length,
      })`),
    ).toEqual({
      overflow: 0,
      plots: Array(7).fill(true),
      pictures: [],
      unnamed: 0,
      scripts: 0,
      dangling: 0,
      doubled: 0,
      headings: 1,
      unscoped: 0,
      outside: 0,
    })

    const text = await page.evaluate<string>('document.body.innerText')
    expect(text).toContain('wrong answers from <full>: 3 with status 500')
    expect(text).toContain('no figure in these results')
    expect(text).toContain('<script>alert(1)</script>')

    const { data } = await page.send('Page.captureScreenshot', { format: 'png' })
    const blank = await browser.open('about:blank', width, height)
    const shot = await measured(blank, data as string)
    expect(shot).toMatchObject({ width, height })
    expect(shot.colours).toBeGreaterThan(50)
    const { data: nothing } = await blank.send('Page.captureScreenshot', { format: 'png' })
    expect((await measured(blank, nothing as string)).colours).toBe(1)
  })
})
