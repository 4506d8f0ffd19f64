/** The scripts that write and list relation tuples. `keys.ts` describes the keys. */

/**
 * Maximum number of index entries that one page reads. Each entry has tuples, unless an operator
 * edited the keys by hand.
 */
const MOST_NODES = 1_000

/**
 * Writes and deletes tuples. KEYS: the version. ARGV: the prefixes of tuples, usersets, index and
 * subjects; then four values for each tuple: `+` or `-`, `<object>#<relation>`, the object's type,
 * and the subject. Returns the number of written tuples, the number of deleted tuples, and the
 * version as text.
 *
 * The script detects errors before its first write: a key of another type, an invalid version, and
 * full memory. With full memory, Redis still accepts calls that only delete. The script writes
 * index and subjects even if the tuple exists, which repairs inconsistent entries.
 */
export const WRITE_TUPLES = `
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
`

/**
 * Lists tuples. KEYS: the indexes, in the order of the list. ARGV:
 *
 * - the prefixes of tuples and usersets;
 * - the maximum number of tuples;
 * - `<object>#<relation>` and subject of the last tuple of the previous page, or empty strings;
 * - the start and the end of the range for each index (`ZRANGEBYLEX`).
 *
 * Returns `<object>#<relation>` and subject of each tuple, in one flat list.
 */
export const READ_TUPLES = `
local most, found, looked = tonumber(ARGV[3]), {}, 0
local function take(key, from)
  local left = most - #found / 2
  if left == 0 then return end
  local members = redis.call('ZRANGEBYLEX', key, from, '+', 'LIMIT', 0, left)
  return members
end
local function tell(node, members)
  for _, member in ipairs(members or {}) do
    found[#found + 1] = node
    found[#found + 1] = member
  end
end
for at, index in ipairs(KEYS) do
  local from, to, count = ARGV[4 + 2 * at], ARGV[5 + 2 * at], most
  while count == most and #found < 2 * most do
    local nodes = redis.call('ZRANGEBYLEX', index, from, to, 'LIMIT', 0, most)
    count = #nodes
    for _, node in ipairs(nodes) do
      looked = looked + 1
      if looked > ${MOST_NODES} then return redis.error_reply('ERR an index without tuples') end
      local tuples, usersets = '-', '-'
      if node == ARGV[4] then
        local is_userset = string.find(ARGV[5], '#', 1, true)
        tuples = not is_userset and '(' .. ARGV[5]
        usersets = is_userset and '(' .. ARGV[5] or '-'
      end
      if tuples then tell(node, take(ARGV[1] .. node, tuples)) end
      tell(node, take(ARGV[2] .. node, usersets))
      from = '(' .. node
    end
  end
end
return found
`
