/** Numbers as people read them. */
import type { Figure, Unit } from '../scenario.ts'

/** Significant digits of what is below 100. */
const DIGITS = 3
const LARGE = 100

const SUFFIXES: Readonly<Record<Unit, string>> = {
  ms: ' ms',
  us: ' us',
  s: ' s',
  '1/s': '/s',
  '%': ' %',
  ratio: '',
  bytes: ' bytes',
  KB: ' KB',
  MB: ' MB',
  'MB/min': ' MB/min',
  cores: ' cores',
  count: '',
}

/** Such as `14,207` or `1.31`: whole from 100 on, with three digits below. */
export function numberText(value: number): string {
  const options =
    Number.isInteger(value) || Math.abs(value) >= LARGE
      ? { maximumFractionDigits: 0 }
      : { maximumSignificantDigits: DIGITS }
  return value.toLocaleString('en-US', options)
}

/** Such as `14,207/s` or `1.31 ms`. */
export function quantity(value: number, unit: Unit): string {
  return `${numberText(value)}${SUFFIXES[unit]}`
}

/** The value of a figure with its unit. */
export function valueText({ value, unit }: Pick<Figure, 'value' | 'unit'>): string {
  return quantity(value, unit)
}

/** Such as `at most 2.4`; empty where there is no aim. */
export function aimText({ aim, unit }: Pick<Figure, 'aim' | 'unit'>): string {
  return aim === undefined ? '' : `at ${aim.at} ${quantity(aim.value, unit)}`
}

/** Such as `2026-11-20`, of a date with its time. */
export function dayOf(date: string): string {
  return date.slice(0, 'yyyy-mm-dd'.length)
}

/** Such as `1 scenario` and `3 scenarios`. */
export function counted(count: number, what: string): string {
  return `${numberText(count)} ${what}${count === 1 ? '' : 's'}`
}
