--- Lists tuples. `keys.ts` describes the keys.
--
-- KEYS: the indexes, in the order of the list. ARGV:
--
-- * the prefixes of tuples and usersets;
-- * the maximum number of tuples;
-- * `<object>#<relation>` and subject of the last tuple of the previous page, or empty strings;
-- * the start and the end of the range for each index (`ZRANGEBYLEX`).
--
-- Returns `<object>#<relation>` and subject of each tuple, in one flat list.

-- The number of index entries that one page reads at most. Each entry has tuples, unless an operator
-- edited the keys by hand.
local MOST_NODES = 1000 --@inline

local most, found, read = tonumber(ARGV[3]), {}, 0
local function take(key, from)
  local left = most - #found / 2
  if left == 0 then return end
  local members = redis.call('ZRANGEBYLEX', key, from, '+', 'LIMIT', 0, left)
  return members
end
local function append(node, members)
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
      read = read + 1
      if read > MOST_NODES then return redis.error_reply('ERR an index without tuples') end
      local tuples, usersets = '-', '-'
      if node == ARGV[4] then
        local is_userset = string.find(ARGV[5], '#', 1, true)
        tuples = not is_userset and '(' .. ARGV[5]
        usersets = is_userset and '(' .. ARGV[5] or '-'
      end
      if tuples then append(node, take(ARGV[1] .. node, tuples)) end
      append(node, take(ARGV[2] .. node, usersets))
      from = '(' .. node
    end
  end
end
return found
