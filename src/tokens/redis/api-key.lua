--- Returns the token id of a record's present key and the number of its changes, or an empty string if
-- there is no record.
local function state_of(record)
  local text = redis.call('GET', record)
  if not text then return '' end
  local key = cjson.decode(text)
  return key.tokenId .. ' ' .. string.format('%d', key.revision or 0)
end

--- Revokes secrets for `seconds`. KEYS has their references and revocations in turn, from `first` on.
local function end_secrets(feed, first, seconds)
  local revocations = {}
  for at = first + 1, #KEYS, 2 do table.insert(revocations, KEYS[at]) end
  append_changes(feed, revocations)
  for at = first, #KEYS, 2 do
    redis.call('SET', KEYS[at + 1], '1', 'EX', seconds)
    redis.call('DEL', KEYS[at])
  end
end
