--- Returns the token id of a record's present key, or an empty string if there is no record.

local function token_id_of(record)
  local text = redis.call('GET', record)
  return text and cjson.decode(text).tokenId or ''
end
