--- Returns the token id of a record's present key and the number of its changes, an empty string if
-- there is no record, or `revoked`.
local function state_of(record)
  local text = redis.call('GET', record)
  if not text then return '' end
  local key = cjson.decode(text)
  if key.revokedAtSeconds then return 'revoked' end
  return key.tokenId .. ' ' .. string.format('%d', key.revision or 0)
end

--- Ends secrets. KEYS has their references and revocations in turn, from `first` on. ARGV has, from
-- `at_text` on, the references that say so. The revocations, which isolates with a cached reference
-- read, last for `seconds`, and the references for `life` seconds.
local function end_secrets(feed, first, seconds, at_text, life)
  local revocations = {}
  for at = first + 1, #KEYS, 2 do table.insert(revocations, KEYS[at]) end
  append_changes(feed, revocations)
  for at = first, #KEYS, 2 do
    redis.call('SET', KEYS[at + 1], '1', 'EX', seconds)
    redis.call('SET', KEYS[at], ARGV[at_text + (at - first) / 2], 'EX', life)
  end
end
