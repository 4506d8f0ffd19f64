--- Writes and deletes tuples. `keys.ts` describes the keys.
--
-- KEYS: the version. ARGV: the prefixes of tuples, usersets, index and subjects; then four values for
-- each tuple: `+` or `-`, `<object>#<relation>`, the object's type, and the subject.
--
-- Returns the number of written tuples, the number of deleted tuples, and the version as text.
--
-- Detects errors before its first write: a key of another type, an invalid version, and full memory.
-- With full memory, Redis still accepts calls that only delete. Writes index and subjects even if the
-- tuple exists, which repairs inconsistent entries.

local before = tonumber(redis.call('GET', KEYS[1]) or '0')
if not before or before < 0 or before > 9007199254740990 then
  return redis.error_reply('ERR not a version')
end
local changes = {}
for at = 5, #ARGV, 4 do
  local node, subject = ARGV[at + 1], ARGV[at + 3]
  local is_userset = string.find(subject, '#', 1, true)
  local change = {
    node = node,
    subject = subject,
    tuples = ARGV[is_userset and 2 or 1] .. node,
    others = ARGV[is_userset and 1 or 2] .. node,
    index = ARGV[3] .. ARGV[at + 2],
    subjects = ARGV[4] .. subject,
    deletes = ARGV[at] == '-'
  }
  redis.call('ZSCORE', change.tuples, subject)
  redis.call('ZSCORE', change.index, node)
  redis.call('ZSCORE', change.subjects, node)
  changes[#changes + 1] = change
end
local written, deleted = 0, 0
for _, change in ipairs(changes) do
  if change.deletes then
    deleted = deleted + redis.call('ZREM', change.tuples, change.subject)
    redis.call('ZREM', change.subjects, change.node)
    if redis.call('EXISTS', change.tuples) + redis.call('EXISTS', change.others) == 0 then
      redis.call('ZREM', change.index, change.node)
    end
  end
end
local time = redis.call('TIME')
local version = math.max(before + 1, tonumber(time[1]) * 1000000 + tonumber(time[2]))
redis.call('SET', KEYS[1], string.format('%.0f', version))
for _, change in ipairs(changes) do
  if not change.deletes then
    written = written + redis.call('ZADD', change.tuples, 0, change.subject)
    redis.call('ZADD', change.index, 0, change.node)
    redis.call('ZADD', change.subjects, 0, change.node)
  end
end
return { written, deleted, string.format('%.0f', version) }
