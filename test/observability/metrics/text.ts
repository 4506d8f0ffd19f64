/**
 * Parses the Prometheus text format strictly, and checks it with promtool where it is installed.
 */
import { spawnSync } from 'node:child_process'
import { isInstalled } from '../../harness/process.ts'

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Family {
  readonly help: string
  readonly type: string
  /** Samples by name: that of the family, or with a suffix of a histogram. */
  readonly samples: ReadonlyMap<string, readonly Sample[]>
}

interface GrowingFamily extends Family {
  readonly samples: Map<string, Sample[]>
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const LINE = new RegExp(
  `^(${NAME})(?:\\{((?:[a-z_]+="(?:[^"\\\\]|\\\\["\\\\n])*",?)+)\\})? (\\S+)$`,
)
const LABEL = /([a-z_]+)="((?:[^"\\]|\\["\\n])*)"/g
const SUFFIX = /_(?:bucket|sum|count)$/

/** Returns families by name. Throws for a line that version 0.0.4 of the format does not allow. */
export function familiesOf(text: string): ReadonlyMap<string, Family> {
  const families = new Map<string, GrowingFamily>()
  if (!text.endsWith('\n')) throw new Error('the last line has no line break')
  let help = ''
  for (const line of text.slice(0, -1).split('\n')) {
    if (line.startsWith('# HELP ')) {
      help = line.slice('# HELP '.length)
      continue
    }
    const [, name = '', type = ''] = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line) ?? []
    if (name !== '') {
      if (families.has(name) || !help.startsWith(`${name} `)) throw new Error(line)
      families.set(name, { help: help.slice(name.length + 1), type, samples: new Map() })
      continue
    }
    const [, sampleName = '', labels = '', value] = LINE.exec(line) ?? []
    const family = families.get(sampleName) ?? families.get(sampleName.replace(SUFFIX, ''))
    if (family === undefined || value === undefined) throw new Error(`not a sample: ${line}`)
    const samples = family.samples.get(sampleName) ?? []
    family.samples.set(sampleName, samples)
    samples.push({ labels: labelsOf(labels), value: Number(value) })
  }
  return families
}

function labelsOf(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(LABEL)].map(([, name = '', value = '']) => [
      name,
      value.replaceAll(/\\(.)/g, (_, character) => (character === 'n' ? '\n' : character)),
    ]),
  )
}

/** Returns the sum of the samples that have this name and at least these labels. */
export function amountOf(text: string, name: string, labels: Record<string, string> = {}): number {
  const families = familiesOf(text)
  const family = families.get(name) ?? families.get(name.replace(SUFFIX, ''))
  if (family === undefined) throw new Error(`no metric ${name}`)
  return (family.samples.get(name) ?? [])
    .filter((each) => Object.entries(labels).every(([key, value]) => each.labels[key] === value))
    .reduce((sum, { value }) => sum + value, 0)
}

/** Reports whether this machine has `promtool` (Debian: `prometheus`). */
export const hasPromtool = isInstalled('promtool')

/** Runs `promtool` and returns its output and exit code. */
export function promtool(args: readonly string[], input = '') {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' })
  return { status, output: stdout + stderr }
}
