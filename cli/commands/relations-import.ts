/** `portcullis relations import`: writes the tuples of a file, 100 in each call. */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from '@commander-js/extra-typings'
import { onlineCommand, workWith } from '../command.ts'
import { Failure, usage } from '../failure.ts'
import type { Gateway } from '../gateway.ts'
import { counted } from '../text.ts'
import { mistakeOfLine } from '../tuple-mistake.ts'
import { createTupleBatches, type NumberedTuple, tupleOfLine } from '../tuples.ts'
import { TENANT } from './relation-questions.ts'

interface Written {
  readonly written: number
  readonly consistencyToken: string
}

/** Prints a progress remark after this many tuples. */
const TUPLES_PER_REMARK = 1_000
/**
 * Error codes of temporary failures. A retry is safe, because writing a tuple twice has no effect.
 */
const PASSING = ['dependency_unavailable', 'rate_limited', 'overloaded']
const MAX_RETRIES = 5
const DEFAULT_WAIT_SECONDS = 2
const MAX_WAIT_SECONDS = 60
const WRITE_POINTER = /^\/writes\/(\d+)(.*)$/

const FORMS = `
A line is a tuple (object#relation@subject), or JSON with the members object, relation and subject. The
member user, as in OpenFGA, can replace subject. Blank lines and lines that begin with # are ignored.

Tuples are written in batches of a hundred. After a failure, the tuples up to the reported line stay
written. Correct the cause and import the same file again: existing tuples stay.`

export function addImport(relations: Command): void {
  onlineCommand(relations, {
    name: 'import',
    does: 'write all tuples of a file',
    examples: [
      'portcullis relations import tuples.txt',
      'portcullis relations import tuples.jsonl --tenant acme',
      'portcullis relations import - < tuples.txt',
    ],
  })
    .argument('<file>', 'file with the tuples; - is standard input')
    .option(...TENANT)
    .addHelpText('after', FORMS)
    .action(async (file, options) => {
      const { gateway, output } = workWith(options)
      const batches = createTupleBatches()
      let [sent, written, line, lastLine] = [0, 0, 0, 0]
      let consistencyToken: string | null = null

      async function send(batch: readonly NumberedTuple[]): Promise<void> {
        if (batch.length === 0) return
        const answer = await writeBatch(gateway, batch, options.tenant).catch((error: unknown) => {
          throw error instanceof Failure ? ofLines(error, batch, lastLine) : error
        })
        const before = sent
        sent += batch.length
        written += answer.written
        consistencyToken = answer.consistencyToken
        lastLine = batch.at(-1)?.line ?? lastLine
        if (Math.floor(sent / TUPLES_PER_REMARK) > Math.floor(before / TUPLES_PER_REMARK))
          output.remark(`${sent} tuples, up to line ${lastLine}`)
      }

      for await (const text of linesOf(file, () => upTo(lastLine))) {
        line += 1
        const tuple = tupleOfLine(text)
        if (tuple === null) continue
        if (tuple === undefined)
          throw usage(`line ${line} is not a tuple: it ${mistakeOfLine(text)}${upTo(lastLine)}`)
        const full = batches.add({ line, tuple })
        if (full !== undefined) await send(full)
      }
      await send(batches.rest())
      const text = `${counted(sent, 'tuple')}, ${written} of them new.`
      output.result({ tuples: sent, written, consistencyToken }, text)
    })
}

/** Writes one batch, and retries after a temporary failure. */
async function writeBatch(
  gateway: Gateway,
  batch: readonly NumberedTuple[],
  tenant: string | undefined,
): Promise<Written> {
  const body = { tenant, writes: batch.map(({ tuple }) => tuple) }
  for (let retries = 0; ; retries += 1) {
    try {
      return await gateway.post<Written>('/relations', body)
    } catch (error) {
      const passes = error instanceof Failure && PASSING.includes(error.code)
      if (!passes || retries === MAX_RETRIES) throw error
      const seconds = Math.max(error.retryAfterSeconds ?? DEFAULT_WAIT_SECONDS, 1)
      if (seconds > MAX_WAIT_SECONDS) throw error
      await pause(seconds * 1_000)
    }
  }
}

/** Returns the same failure with paths of the request replaced by line numbers of the file. */
function ofLines(failure: Failure, batch: readonly NumberedTuple[], lastLine: number): Failure {
  const { exitCode, code, message, requestId, retryAfterSeconds } = failure
  const findings = failure.findings.map((finding) => {
    const [, index, path = ''] = WRITE_POINTER.exec(finding.path) ?? []
    const line = index === undefined ? undefined : batch[Number(index)]?.line
    return line === undefined ? finding : { in: `line ${line}`, path, message: finding.message }
  })
  const detail = message.replace(/\.$/, '') + upTo(lastLine)
  return new Failure(exitCode, code, detail, { requestId, retryAfterSeconds, findings })
}

const upTo = (line: number): string =>
  line === 0 ? '; nothing was written' : `; the tuples up to line ${line} were written`

/**
 * Yields the lines of a file. If the file cannot be read, the failure includes `written()`, which
 * says what was already written.
 */
async function* linesOf(file: string, written: () => string): AsyncGenerator<string> {
  const input = file === '-' ? process.stdin : createReadStream(file)
  try {
    yield* createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    if (syscall === undefined) throw error
    const name = file === '-' ? 'standard input' : file
    throw usage(`${name} cannot be read (${code})${written()}`)
  }
}
