/**
 * What only `npm run test:long` runs, which sets `LONG=1`: more repetitions of an experiment, or further variants of a
 * test of which each run has one. Both make the same assertions.
 */
import { describe, test } from 'vitest'

/** Whether this is a run of `npm run test:long`. */
export const IS_LONG = process.env.LONG === '1'

/** Returns `long` in `npm run test:long`, else `usual`. */
export const usualOrLong = <Value>(usual: Value, long: Value): Value => (IS_LONG ? long : usual)

/** Returns all cases in `npm run test:long`, else the first one of each `step`. */
export const everyOrAll = <Case>(step: number, cases: readonly Case[]): readonly Case[] =>
  IS_LONG ? cases : cases.filter((_, at) => at % step === 0)

/** Defines a test that only `npm run test:long` runs. */
export const testInLong = test.runIf(IS_LONG)

/** Defines a group of tests that only `npm run test:long` runs. */
export const describeInLong = describe.runIf(IS_LONG)
