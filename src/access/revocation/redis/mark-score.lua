--- Returns the score of a mark, above that of every mark without a version. Gateways of a version that has only those
-- end a mark that they can read, although they copy nothing for it.
local function mark_score(version) return string.format('%.0f', version + 2000000000000000) end
