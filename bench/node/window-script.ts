/** The script of the opponents that are written by hand: revocation and one sliding window. */

export const WINDOW_MS = 60_000

/**
 * Keys: the revocation, this window and the previous one. Arguments: the limit, and the share of the previous
 * window that still counts. Returns 1, -401 or -429.
 */
export const ADMIT = `
if redis.call('EXISTS', KEYS[1]) == 1 then return -401 end
local current = tonumber(redis.call('GET', KEYS[2]) or '0')
local previous = tonumber(redis.call('GET', KEYS[3]) or '0')
if current + previous * tonumber(ARGV[2]) >= tonumber(ARGV[1]) then return -429 end
if redis.call('INCR', KEYS[2]) == 1 then redis.call('PEXPIRE', KEYS[2], ${2 * WINDOW_MS}) end
return 1`
