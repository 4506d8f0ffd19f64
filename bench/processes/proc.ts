/** CPU times, memory, ports and descendants of processes, from Linux' `/proc` (proc(5)). */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { basename } from 'node:path'

export interface CpuTimes {
  readonly userMicros: number
  readonly systemMicros: number
}

const MICROS_PER_SECOND = 1_000_000
const BYTES_PER_KILOBYTE = 1_024
/** Positions after the process name, which is in brackets and may contain any character. */
const USER_FIELD = 11
const SYSTEM_FIELD = 12
/** The same times of children that have ended, from the positions of their parent on. */
const ENDED_CHILDREN = 2
const LISTEN = '0A'

let ticksPerSecond: number | undefined

/** Returns the CPU time of a process with all its threads, and of its children that have ended. */
function cpuTimesOf(pid: number): CpuTimes {
  ticksPerSecond ??= Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
  return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'), ticksPerSecond)
}

/** Parses the text of `/proc/<pid>/stat`. */
export function parseStat(stat: string, ticks: number): CpuTimes {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const micros = (field: number) =>
    ((Number(fields[field]) + Number(fields[field + ENDED_CHILDREN])) / ticks) * MICROS_PER_SECOND
  return { userMicros: micros(USER_FIELD), systemMicros: micros(SYSTEM_FIELD) }
}

/** Returns the bytes that a process and its descendants have caused to be written to a disk. */
export function writtenBytesOf(pid: number): number {
  let bytes = 0
  for (const member of [pid, ...descendants(pid)]) {
    try {
      const text = readFileSync(`/proc/${member}/io`, 'utf8')
      bytes += Number(/^write_bytes: (\d+)/m.exec(text)?.[1])
    } catch {
      // The process ended after it was listed, or belongs to another user.
    }
  }
  return bytes
}

export function cpuBetween(before: CpuTimes, after: CpuTimes): CpuTimes {
  return {
    userMicros: after.userMicros - before.userMicros,
    systemMicros: after.systemMicros - before.systemMicros,
  }
}

/** Returns the CPU time of all processes of this machine, in microseconds. */
export function machineCpuMicros(): number {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n')
  const [user, nice, system, , , irq, softirq] = line.trim().split(/\s+/).slice(1).map(Number)
  ticksPerSecond ??= Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
  const ticks = [user, nice, system, irq, softirq].reduce<number>((sum, n) => sum + (n ?? 0), 0)
  return (ticks / ticksPerSecond) * MICROS_PER_SECOND
}

/** Returns the CPU time of `pid` and its descendants, of which some may have ended. */
export function familyCpuOf(pid: number): CpuTimes {
  let [userMicros, systemMicros] = [0, 0]
  for (const member of [pid, ...descendants(pid)]) {
    try {
      const times = cpuTimesOf(member)
      userMicros += times.userMicros
      systemMicros += times.systemMicros
    } catch {
      // The process ended after it was listed.
    }
  }
  return { userMicros, systemMicros }
}

/** Returns the sum of user and system time, in microseconds. */
export const totalMicros = ({ userMicros, systemMicros }: CpuTimes): number =>
  userMicros + systemMicros

/** Returns the resident memory of a process in bytes; undefined if it has ended, or is ending. */
export function residentBytesOf(pid: number): number | undefined {
  try {
    const [, kilobytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return kilobytes === undefined ? undefined : Number(kilobytes) * BYTES_PER_KILOBYTE
  } catch {
    return undefined
  }
}

/** Returns the ids of all descendants; only those of `program` if given. */
export function descendants(pid: number, program?: string): readonly number[] {
  return childrenOf(pid).flatMap((child) => [
    ...(program === undefined || programOf(child) === program ? [child] : []),
    ...descendants(child, program),
  ])
}

/** Reports whether the process listens on this TCP port of an IPv4 address. */
export function listensOn(pid: number, port: number): boolean {
  return portsOf(pid).includes(port)
}

/** Returns the TCP ports of IPv4 addresses that the process listens on. */
export function portsOf(pid: number): readonly number[] {
  const held = new Set(readdirSync(`/proc/${pid}/fd`).map((fd) => link(`/proc/${pid}/fd/${fd}`)))
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[3] === LISTEN && held.has(`socket:[${fields[9]}]`))
    .map((fields) => Number.parseInt(fields[1]?.split(':')[1] ?? '', 16))
}

function childrenOf(pid: number): readonly number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      (readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').match(/\d+/g) ?? []).map(Number),
    )
  } catch {
    return []
  }
}

function programOf(pid: number): string {
  return basename(link(`/proc/${pid}/exe`))
}

function link(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
