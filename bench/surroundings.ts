/** Records machine and revision of a result, so that it can be judged and repeated. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { cpus, loadavg, platform, release, totalmem } from 'node:os'
import { ROOT } from '../dev/start/settings.ts'
import { WRANGLER } from '../dev/start/wrangler.ts'
import { commandLine } from './main.ts'
import { rounded } from './measure/statistics.ts'
import { WORKERD } from './stack/workerd.ts'

const BYTES_PER_GIB = 1_073_741_824

export function surroundings(argv: readonly string[], redis: string) {
  const processors = cpus()
  return {
    date: new Date().toISOString(),
    command: commandLine('npm run bench', argv),
    commit: commit(),
    machine: {
      processor: processors[0]?.model ?? 'unknown',
      cores: processors.length,
      memoryGiB: rounded(totalmem() / BYTES_PER_GIB, 1),
      system: `${platform()} ${release()}`,
      loadAverageBefore: loadavg().map((load) => rounded(load, 2)),
    },
    versions: {
      node: process.versions.node,
      workerd: output(WORKERD, '--version').replace('workerd ', ''),
      wrangler: versionOf('wrangler'),
      autocannon: versionOf('autocannon'),
    },
    redis,
  }
}

/** Everything that affects a figure. Results of earlier runs do not count as changes. */
const MEASURED = [
  ...['src', 'workers', 'bench', 'dev', 'portcullis.config.ts', 'wrangler.toml'],
  ...['portcullis.model.json', 'package-lock.json', ':(exclude)bench/results'],
]

/** Returns the commit, and whether the measured files differ from it. */
function commit(): { readonly id: string; readonly changed: boolean } {
  try {
    return {
      id: output('git', 'rev-parse', '--short=12', 'HEAD'),
      changed: output('git', 'status', '--porcelain', '--', ...MEASURED) !== '',
    }
  } catch {
    return { id: 'unknown', changed: true }
  }
}

function output(program: string, ...args: readonly string[]): string {
  return execFileSync(program, args, { cwd: ROOT, encoding: 'utf8' }).trim()
}

function versionOf(name: string): string {
  const file = createRequire(WRANGLER).resolve(`${name}/package.json`)
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version
}
