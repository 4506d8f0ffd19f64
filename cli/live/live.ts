/** What a person sees of a gateway that runs in this terminal: where it is, and a line for each decision. */
import { styleFor } from '../terminal.ts'
import { visibleJson } from '../text.ts'
import { type Decision, decisionLine } from './decision.ts'

/** A gateway that is ready. */
export interface Ready {
  readonly url: string
  /** Undefined: the policy has no console. */
  readonly console?: string | undefined
  /** The page about the API. Undefined: the policy has none. */
  readonly docs?: string | undefined
  /** A shell command that prints an access token for the demonstration. */
  readonly token?: string | undefined
  /** Requests to try, ready to paste. */
  readonly examples?: string | undefined
}

export interface Live {
  ready(ready: Ready): void
  decided(event: Decision): void
}

/**
 * Creates the output. With `json`, stdout has an object with the URL, and then each event in a line, as the log of
 * `portcullis serve` has it.
 */
export function createLive(json: boolean, stdout = process.stdout): Live {
  const write = (line: string) => void stdout.write(`${line}\n`)
  if (json)
    return {
      ready: ({ url }) => write(visibleJson({ url })),
      decided: ({ path: _path, ...event }) => write(visibleJson({ level: 'info', ...event })),
    }
  return {
    ready: (ready) => write(readyText(ready)),
    // The width may change while the gateway runs.
    decided: (event) => write(decisionLine(event, styleFor(stdout))),
  }
}

const ROWS = [
  ['URL', 'url'],
  ['Console', 'console'],
  ['Docs', 'docs'],
  ['Token', 'token'],
] as const
const NAME_WIDTH = 9

function readyText(ready: Ready): string {
  const rows = ROWS.flatMap(([name, member]) =>
    ready[member] === undefined ? [] : [`  ${name.padEnd(NAME_WIDTH)}${ready[member]}`],
  )
  const parts = [`Portcullis is ready on ${ready.url}`, rows.join('\n')]
  return [...parts, ...(ready.examples === undefined ? [] : [ready.examples])].join('\n')
}
