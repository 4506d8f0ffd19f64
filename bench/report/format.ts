/** Formats numbers for readers. */
import type { Figure, Unit } from '../scenario.ts'

/** Significant digits of numbers below 100. */
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

/** Formats a number, such as `14,207` or `1.31`: an integer from 100 on, three digits below. */
export function numberText(value: number): string {
  const options =
    Number.isInteger(value) || Math.abs(value) >= LARGE
      ? { maximumFractionDigits: 0 }
      : { maximumSignificantDigits: DIGITS }
  return value.toLocaleString('en-US', options)
}

/** Formats a number with its unit, such as `14,207/s` or `1.31 ms`. */
function quantity(value: number, unit: Unit): string {
  return `${numberText(value)}${SUFFIXES[unit]}`
}

/** Formats a figure with its unit and, if known, the quartiles of its rounds: `2.9 (2.8 to 3.1)`. */
export function valueText({
  value,
  unit,
  quartiles,
}: Pick<Figure, 'value' | 'unit' | 'quartiles'>): string {
  if (quartiles === undefined) return quantity(value, unit)
  return `${quantity(value, unit)} (${quartiles.map(numberText).join(' to ')})`
}

/** Reports whether a target is met; undefined without one. An equal value meets it. */
export function aimMet({ value, aim }: Pick<Figure, 'value' | 'aim'>): boolean | undefined {
  if (aim === undefined) return undefined
  return aim.at === 'most' ? value <= aim.value : value >= aim.value
}

/** Formats a target, such as `at most 2.4` or `at most 3, stretch 2.2`; empty if there is none. */
export function aimText({ aim, unit }: Pick<Figure, 'aim' | 'unit'>): string {
  if (aim === undefined) return ''
  const stretch = aim.stretch === undefined ? '' : `, stretch ${quantity(aim.stretch, unit)}`
  return `at ${aim.at} ${quantity(aim.value, unit)}${stretch}`
}

/** Returns the day of a date with time, such as `2026-11-20`. */
export function dayOf(date: string): string {
  return date.slice(0, 'yyyy-mm-dd'.length)
}
