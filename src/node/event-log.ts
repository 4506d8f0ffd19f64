/** Writes audit events to the log, without a system call for each. */

/** The part of `process.stdout` that is needed. */
interface Output {
  write(text: string): unknown
}

/**
 * Returns a function that writes lines. Lines of one turn of the event loop are one write, at its end.
 */
export function createEventLog(output: Output): (line: string) => void {
  let lines = ''
  function flush(): void {
    const text = lines
    lines = ''
    output.write(text)
  }
  return function write(line) {
    if (lines === '') setImmediate(flush)
    lines += `${line}\n`
  }
}
