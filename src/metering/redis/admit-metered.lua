--- Decides as `admit.lua`, with the same keys and arguments. Limits may also be metered. It reads
-- records of plans whose keys are in the arguments, so it does not work on a Redis cluster.

--@include ../../admission/redis/lease.lua
--@include declared-plans.lua
--@include meters.lua
--@include ../../admission/redis/admit.lua
