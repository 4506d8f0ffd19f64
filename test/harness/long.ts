/**
 * The number of repetitions of an experiment: a small one in continuous integration, a larger one in
 * `npm run test:long`, which sets `LONG=1`. Both make the same assertions.
 */

/** Whether this is a run of `npm run test:long`. */
export const IS_LONG = process.env.LONG === '1'

/** Returns `long` in `npm run test:long`, else `usual`. */
export const usualOrLong = <Value>(usual: Value, long: Value): Value => (IS_LONG ? long : usual)
