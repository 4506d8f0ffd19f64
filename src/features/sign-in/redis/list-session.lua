--- Adds a session to the sessions of its user, which another lane has.
--
-- KEYS: the sessions of the user. ARGV: as the first four of `open-session.lua`.
--
-- Returns the ids of the sessions above the maximum, the oldest first. The caller ends them.

--@include session-list.lua

return add_to_list(KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]))
