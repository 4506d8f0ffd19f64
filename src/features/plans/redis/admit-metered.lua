--- Decides as `admit.lua`, with the same keys and arguments. Limits may also be metered. The records of
-- plans are further keys, and their number is a further argument. So it uses only declared keys as well.

--@include ../../../access/admission/redis/lease.lua
--@include declared-plans.lua
--@include meters.lua
--@include ../../../access/admission/redis/admit.lua
